"""Part two has separate columns and totals. Reports omit it if no one submitted it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grader.course import Course
from grader.errors import UsageError
from grader.reports.class_table import class_table, optional_table
from grader.reports.gradescope_json import results_json
from grader.result import Policy, ProblemResult, Status
from tests.results import doubles

SIX, SEVEN = "06-doubling", "07-doubling"
STUB = "def double(x):\n    raise NotImplementedError\n"
NOTED = f"# my notes\n{STUB}"
OF_TWO = [SIX, SEVEN, "part_two_total", "part_two_max"]


def texts(school: Any) -> dict[str, str]:
    """Return the texts of all reports except the results, by file name."""
    files = [*school.out.rglob("*.html"), *school.out.rglob("*.csv")]
    return {path.relative_to(school.out).as_posix(): path.read_text() for path in files}


# The course


def test_an_unknown_part_is_refused(small_course: Course) -> None:
    with pytest.raises(UsageError, match="no part 'three'; there are: one, two"):
        small_course.of_part("three")
    with pytest.raises(UsageError, match="no problem of part two"):
        small_course.of_part("two")


# Results


def problem(id: str, part: str, status: Status, sha256: str = "x") -> ProblemResult:
    return ProblemResult(id, sha256, [doubles(status)], part=part, optional=part == "two")


@pytest.mark.parametrize(
    ("status", "sha256", "skipped"),
    [
        (Status.NOT_IMPLEMENTED, "x", True),
        (Status.MISSING, "", True),
        (Status.MISSING, "x", False),  # a file without the required names
        (Status.ERROR, "", False),  # a file that can't be read
        (Status.FAILED, "x", False),
        (Status.PASSED, "x", False),
    ],
)
def test_a_problem_without_work_is_skipped_if_it_is_optional(
    status: Status, sha256: str, skipped: bool
) -> None:
    assert problem("06", "two", status, sha256).skipped is skipped
    assert not problem("05", "one", status, sha256).skipped


# Submissions


def test_a_stub_of_part_two_does_not_count_as_submitted(long_school: Any) -> None:
    long_school.hand_in("ada", STUB, "01-doubling")
    long_school.hand_in("ada", STUB.replace("\n", "\r\n"), SIX)
    long_school.hand_in("bob", NOTED, SIX)
    ada, bob = long_school.submissions()
    assert [*ada.files] == ["01-doubling"]
    assert [*bob.files] == ["01-doubling", SIX]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (f"{SIX}/problem.py", ""),
        (f"{SIX}/problem (1).py", "was read as"),
        ("problem.txt", "There is no problem.py"),
        ("01-doubling/problem.py", ""),  # a repository without the problem
    ],
)
def test_submissions_of_part_two_alone_get_an_explanation(
    long_school: Any, name: str, told: str
) -> None:
    file = long_school.folder.with_name("six") / "cleo" / name
    file.parent.mkdir(parents=True)
    file.write_text(STUB)
    run = long_school.grade(folder=file.parents[name.count("/") + 1], only="06", is_whole=True)
    (cleo,) = run.results
    assert (cleo.problems, cleo.status) == ([], "not_attempted")
    notes = [note for note in cleo.notes if not note.startswith("Not read")]
    assert [told in note for note in notes] == [True] * bool(told)
    assert long_school.graded == []


# Reports


def test_reports_omit_part_two_if_no_one_submitted_it(long_school: Any) -> None:
    long_school.hand_in("ada", STUB, SIX)
    long_school.hand_in("bob", NOTED, SEVEN)
    run = long_school.grade()
    assert run.optional == {}
    assert [*long_school.rows()["ada"]] == [
        "submission",
        "identity",
        "status",
        "01-doubling",
        "total",
        "max",
    ]
    for name, text in texts(long_school).items():
        assert not any(word in text for word in (SIX, SEVEN, "art two", "part_two")), name
    assert long_school.grade().graded == 0


def test_attempted_parts_have_columns_and_totals(long_school: Any) -> None:
    long_school.hand_in("ada", long_school.right, SIX)
    long_school.hand_in("ada", long_school.wrong, SEVEN)
    run = long_school.grade()
    found = long_school.rows()
    assert [*found["ada"]][3:] == ["01-doubling", "total", "max", *OF_TWO]
    assert [*found["ada"].values()][3:] == ["4", "4", "4", "4", "0", "4", "8"]
    assert [*found["bob"].values()][3:] == ["0", "0", "4", "", "", "", ""]
    assert [[c.header, *c.cells] for c in class_table(run.results, run.problems).columns] == [
        ["submission", "ada", "bob"],
        ["01", "4", "0"],
        ["total", "4 / 4", "0 / 4"],
    ]
    assert [
        [c.header, *c.cells]
        for c in optional_table(run.results, "two", run.optional["two"]).columns
    ] == [
        ["submission", "ada"],
        ["06", "4"],
        ["07", "0"],
        ["part two", "4 / 8"],
    ]
    said = texts(long_school)
    for name in ("feedback/ada.html", "instructor/ada.html"):
        assert "4 of 4 points" in said[name]
        assert "Part two: 4 of 8 points" in said[name]
    for name in ("feedback/bob.html", "instructor/bob.html"):
        assert not any(word in said[name] for word in (SIX, SEVEN, "art two")), name
    assert "1 tried part two, with a mean of 4 points." in said["index.html"]


def test_the_score_on_gradescope_is_that_of_part_one(long_school: Any) -> None:
    long_school.hand_in("ada", long_school.wrong)
    long_school.hand_in("ada", long_school.right, SIX)
    ada, _ = long_school.grade().results
    data = json.loads(results_json(ada, Policy.TITLES))
    assert data["score"] == 0
    assert "Part two: 4 of 4 points" in data["output"]
    assert [test["score"] for test in data["tests"]] == [0, 4]


# Grading one part


def test_grading_part_one_leaves_part_two_unchanged(long_school: Any) -> None:
    long_school.hand_in("ada", long_school.wrong, SIX)
    long_school.grade()
    long_school.hand_in("ada", long_school.right, SIX)
    long_school.hand_in("ada", long_school.wrong)
    run = long_school.grade(part="one")
    assert long_school.graded == [("ada", ["01-doubling"])]
    assert [str(change)[:25] for change in run.news.changes] == ["ada: 01-doubling 4 -> 0 ("]
    assert long_school.rows()["ada"]["part_two_total"] == "0"


def test_part_two_alone_shows_its_columns_even_when_empty(long_school: Any) -> None:
    run = long_school.grade(part="two")
    assert (run.graded, run.problems, run.optional) == (0, [], {"two": [SIX, SEVEN]})
    ada = long_school.rows()["ada"]
    assert [*ada][3:] == ["01-doubling", "total", "max", *OF_TWO]
    assert set([*ada.values()][3:]) == {""}
    assert not run.news.missing
    page = texts(long_school)["index.html"]
    assert "ot attempted" not in page
    assert "Not tried" not in page


def test_marks_of_part_two_stay_without_a_new_submission(long_school: Any) -> None:
    long_school.hand_in("ada", long_school.right, SIX)
    long_school.grade()
    (long_school.folder / "ada" / SIX / "problem.py").write_text(STUB)
    assert long_school.grade().graded == 0
    assert long_school.rows()["ada"]["part_two_total"] == "4"
