"""The audit's table shows how many points of a function a file with a known mistake gets."""

from __future__ import annotations

from dataclasses import replace

from grader.author.audit import run_audit
from grader.author.tables import points_kept
from grader.course import Course
from tests.catalogue import write_mistakes


def test_the_table_shows_the_points_that_ideas_and_slips_keep(small_course: Course) -> None:
    line = "    return x + x"
    path = write_mistakes(
        small_course.root / "solutions/01-doubling",
        {
            "triples": ("the number is tripled", line, "    return 3 * x"),
            "squares": ("the number is squared", line, "    return x * x"),
            "halves": ("the number is halved", line, "    return x / 2"),
        },
    )
    heads = path.read_text().replace("triples (reference)", "triples (reference) idea of double")
    path.write_text(heads.replace("squares (reference)", "squares (reference) slip"))
    (problem,) = small_course.problems()
    audit = run_audit(small_course, [problem], 1, all_tests=True)
    rows = zip(*(column.cells for column in points_kept(audit, problem).columns), strict=True)
    assert list(rows) == [
        ("double", "squares", "slip", "0/4"),
        ("double", "triples", "idea", "0/4"),
    ]
    audit.outcomes[:] = [replace(outcome, is_whole=False) for outcome in audit.outcomes]
    assert [*points_kept(audit, problem).columns[-1].cells] == ["≤ 0/4", "≤ 0/4"]
