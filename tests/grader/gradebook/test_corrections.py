"""Corrections in the gradebook folder apply to every run and are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grader.gradebook.folder import GradebookFolder
from grader.reports.feedback import feedback_page
from grader.reports.gradebook_csv import (
    changes,
    marks_gone,
    read_gradebook,
    write_gradebook,
)
from grader.result import Policy, Status, SubmissionResult, TestResult
from tests.grader.gradebook.built import adjusted, problem, result

HEADER = "submission,problem,test,mark,reason\n"
ID = "03-scaled-attention"


def corrected(
    folder: Path, lines: str, *results: SubmissionResult
) -> tuple[list[SubmissionResult], list[str]]:
    """Return the corrected results, and the messages about the corrections."""
    (folder / "corrections.csv").write_text(HEADER + lines, encoding="utf-8")
    return adjusted(results, GradebookFolder(folder))


def marks(results: list[SubmissionResult]) -> list[tuple[float, float]]:
    return [(r.points, r.max) for r in results]


@pytest.mark.parametrize("name", ["canvas:1004", "chen-1a2b", "陳 大文", " 陳  大文 "])
def test_a_correction_applies_to_the_named_student(name: str, folder: Path) -> None:
    chen = result("chen-1a2b", identity="canvas:1004", full_name="陳 大文")
    others = result("chen", identity="canvas:1005", full_name="陳 小文")
    graded, messages = corrected(folder, f"{name},03,,23.5,Graded by hand\n", chen, others)
    assert marks(graded) == [(23.5, 25), (20, 25)]
    (change,) = graded[0].problems[0].adjustments
    assert (change.points, change.reason) == (3.5, "Corrected: Graded by hand")
    assert not messages


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param("ada,3,test_cases,4,Nearly\n", [(24, 25), (20, 25)], id="all cases"),
        pytest.param(
            "ada,03-scaled-attention,test_cases[b],2,Nearly\n", [(22, 25), (20, 25)], id="one case"
        ),
        pytest.param(
            "*,03,test_first,leave out,It was wrong\n", [(0, 5), (0, 5)], id="left out for all"
        ),
        pytest.param("*,03,,Leave out,Fire alarm\n", [(0, 0), (0, 0)], id="whole problem left out"),
        pytest.param(
            "*,03,test_cases,leave out,Unclear\nada,03,test_cases,5,Shown at the board\n",
            [(25, 25), (20, 20)],
            id="a line for a student overrides a line for all",
        ),
        pytest.param(
            "ada,03,,21,Together\n*,03,test_cases,1,A little\n",
            [(21, 25), (21, 25)],
            id="a mark for the problem overrides marks for its tests",
        ),
        pytest.param(
            "ada,03,,21,one\nada,3,,21,two\n", [(21, 25), (20, 25)], id="the same line twice"
        ),
    ],
)
def test_each_line_sets_marks(
    lines: str, expected: list[tuple[float, float]], folder: Path
) -> None:
    graded, messages = corrected(folder, lines, result("ada"), result("bob"))
    assert (marks(graded), messages) == (expected, [])


def test_a_maximum_in_thirds_may_be_rounded(folder: Path) -> None:
    (graded,), messages = corrected(
        folder, "ada,03,,6.67,x\n", result("ada", problem(ID, 0, 20 / 3))
    )
    assert (marks([graded]), messages) == ([(graded.max, 6.666667)], [])


KIMS = [result(f"kim-{n}", identity=f"moodle:{n}", full_name="Kim Lee") for n in (1, 2)]
ADAS = [
    result("ada-1", identity="canvas:1", full_name="Ada Lovelace"),
    result("Ada Lovelace", full_name="Ada Lovelace"),
]
CHEN = [result("chen", identity="canvas:1004", full_name="陳 大文")]
BOTH = [result("ada"), result("bob")]
NOBODY = "no student in these results is called"
TESTS = "test_first, test_cases, test_cases[a], test_cases[b]"


@pytest.mark.parametrize(
    ("line", "class_", "why", "instead"),
    [
        (
            "Kim Lee,03,,25,x",
            KIMS,
            "'Kim Lee' may refer to moodle:1 or moodle:2",
            "moodle:2,03,,25,x",
        ),
        ("Ada Lovelace,03,,25,x", ADAS, "'Ada Lovelace' may refer to Ada Lovelace or canvas:1", ""),
        ("moodle:15,03,,25,x", KIMS, f"{NOBODY} 'moodle:15'", "# moodle:15,03,,25,x"),
        ("Kim Le,03,,25,x", KIMS[:1], f"{NOBODY} 'Kim Le'", "Kim Lee,03,,25,x"),
        # The number may also be the university's number of another student.
        ("1004,03,,25,x", CHEN, f"{NOBODY} '1004'", "canvas:1004,03,,25,x"),
        ("eve,03,,20,x", BOTH, f"{NOBODY} 'eve'", ""),
        ("bobb,03,,2,x", BOTH, f"{NOBODY} 'bobb'", "bob,03,,2,x"),
        ("Ольга,03,,2,x", BOTH, f"{NOBODY} 'Ольга'", ""),
        ("ada,04,,20,x", BOTH, "'ada' has not been graded in '04'", ""),
        ("*,09,,20,x", BOTH, "nobody has been graded in '09'", ""),
        ("ada,03,other,2,x", BOTH, f"{ID} has no test 'other'; there are {TESTS}", ""),
        ("ada,03,test_case,2,x", BOTH, f"{ID} has no test 'test_case'", "ada,03,test_cases,2,x"),
        ("ada,03,,26,x", BOTH, "26 is more than the maximum, 25", ""),
        ("ada,03,,21,x\nada,3,,23,y", BOTH, "line 5 contradicts it", ""),
    ],
)
def test_a_line_without_a_match_is_reported_and_changes_nothing(
    line: str, class_: list[SubmissionResult], why: str, instead: str, folder: Path
) -> None:
    lines = f"# by hand\n\n{line}\nfine,03,,21,x\n"
    graded, messages = corrected(folder, lines, *class_, result("fine"))
    assert marks(graded) == [(20, 25)] * len(class_) + [(21, 25)]
    assert messages[0].startswith(f"corrections.csv, line 4, has no effect: {why}.")
    assert not instead or messages[0].splitlines()[-1] == instead


def test_a_file_of_a_spreadsheet_is_read(folder: Path) -> None:
    text = 'Submission;Problem;Mark;Reason\r\nada;03;"22,5";"He said; ""why""?"\r\n'
    (folder / "corrections.csv").write_bytes(text.encode("utf-8-sig"))
    (graded,), messages = adjusted([result("ada")], GradebookFolder(folder))
    assert graded.points == 22.5
    assert graded.problems[0].adjustments[0].reason == 'Corrected: He said; "why"?'
    assert not messages


def test_internal_errors_stay_without_a_mark(folder: Path) -> None:
    failed = problem("03-scaled-attention", 20, 25)
    failed.tests.append(TestResult("test_last", "It ends", True, 1, Status.INTERNAL))
    (graded,), _ = corrected(folder, "*,03,,25,why\n", result("ada", failed))
    assert not graded.problems[0].adjustments


def test_gradebook_and_feedback_explain_corrections(folder: Path) -> None:
    lines = "ada,03,,23,By hand\n*,03,test_cases,leave out,Unclear\n"
    graded, _ = corrected(folder, lines, result("ada"), result("bob"))
    write_gradebook(graded, ["03-scaled-attention"], folder / "gradebook.csv")
    rows = read_gradebook(folder / "gradebook.csv")
    assert rows["bob"]["adjustments"] == "03: the maximum is 5 points lower: Left out: Unclear"
    assert [*rows["bob"]][-1] == "adjustments"
    text = feedback_page(graded[1], Policy.POINTS)
    assert "the maximum is 5 points lower: Left out: Unclear" in text


def test_marks_without_a_result_are_listed() -> None:
    """Totals, names and empty marks are not listed."""
    row = {"submission": "ada", "status": "graded", "03-scaled-attention": "20", "total": "20"}
    row |= {"01-softmax": "10", "02-basic-attention": "", "max": "35"}
    row |= {"part_two_total": "3", "member": "1001"}
    before = {name: row | {"submission": name} for name in ("ada", "bob")}
    gone = marks_gone(before, [result("ada")], {("bob", "01-softmax")})
    assert [(c.name, c.problem, c.before, c.now) for c in gone] == [
        ("ada", "01-softmax", "10", "none"),
        ("bob", "03-scaled-attention", "20", "none"),
    ]


@pytest.mark.parametrize(
    "saved",
    [
        lambda text: text,
        lambda text: "\ufeff" + text,
        lambda text: text.replace(",", ";").replace("\n", "\r\n"),
    ],
)
def test_a_gradebook_saved_by_a_spreadsheet_is_read(folder: Path, saved: Any) -> None:
    path = folder / "gradebook.csv"
    write_gradebook([result("ada")], ["03-scaled-attention"], path)
    before = read_gradebook(path)
    path.write_text(saved(path.read_text(encoding="utf-8-sig")), encoding="utf-8")
    assert read_gradebook(path) == before
    assert before["ada"]["03-scaled-attention"] == "20"


def test_the_list_of_changes_has_the_reasons(folder: Path) -> None:
    before = [result("ada")]
    write_gradebook(before, ["03-scaled-attention"], folder / "gradebook.csv")
    rows = read_gradebook(folder / "gradebook.csv")
    now, _ = corrected(folder, "ada,03,,23,By hand\n", *before)
    (change,) = changes(rows, now, {"ada": before[0]})
    assert str(change) == "ada: 03-scaled-attention 20 -> 23 (Corrected: By hand)"
    write_gradebook(now, ["03-scaled-attention"], folder / "gradebook.csv")
    rows = read_gradebook(folder / "gradebook.csv")
    (change,) = changes(rows, before, {"ada": now[0]})
    assert change.reason == "no longer: Corrected: By hand"
