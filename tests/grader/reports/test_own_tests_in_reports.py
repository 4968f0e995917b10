"""What reports say of the tests that students wrote."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from grader.reports.class_table import remarks
from grader.reports.dashboard import dashboard
from grader.reports.gradebook_csv import write_gradebook
from grader.result import BreakResult, Policy, ProblemResult, Status, SubmissionResult, TestResult
from tests.results import feedback_text, result_of

ID = "01-softmax"


def of(name: str, **found: object) -> SubmissionResult:
    tests = {"right": 9, "core": 4, "max": 10.0, "full": 0.5, "bonus": 2.0} | found
    own = BreakResult(ID, "0" * 64, **tests)  # type: ignore[arg-type]
    passed = TestResult("test_a", "It is right", False, 10.0, Status.PASSED)
    problem = ProblemResult(ID, "f" * 64, [passed], own_tests=own)
    return result_of(name, problem, full_name=name)


def missing(*names: str) -> dict[str, str]:
    return {name: f"it is {name}" for name in names}


CLASS = [
    of("ada", core_caught=2.0, core_missed=missing("low", "high"), mistakes=5, caught=2.5),
    of(
        "bob",
        core_caught=3.0,
        core_missed=missing("low"),
        refused=["vmapped"],
        refusals=["On a right solution test_a fails in line 2, assert x < <b>."],
    ),
    of("cyd", core_caught=4.0, refused=["vmapped", "plain"], refusals=["On 2 right solutions ..."]),
    of("dan", reason="All of its tests repeat visible tests.", repeats=["test_b"], right=0, core=0),
]


def test_points():
    assert [r.problems[0].own_tests.points for r in CLASS] == [11, 10, 0, 0]


def test_the_terminal_says_what_nobody_caught_and_what_is_open():
    lines = remarks(CLASS)
    assert (
        "bob: 01, own tests: one right file is refused (vmapped): look at it; the points are "
        in ("\n".join(lines))
    )
    assert lines[-1].startswith(f"Tests that students wrote for {ID}: 4 files, mean 5.25 of 10")
    assert lines[-1].endswith("Nobody caught: low.")  # cyd's refuse what is right, so they say less
    assert "To look at: 1" in lines[-1]


def test_the_class_page_has_it():
    page = dashboard(CLASS, [ID])
    assert "Tests that students wrote" in page
    assert "To look at: 01-softmax" in page
    assert "it is low" in page
    assert "it is high" not in page
    assert "2 of 9 right files are refused (vmapped, plain)" in page
    assert "1 who repeat visible tests" in page
    assert "assert x &lt; &lt;b&gt;" in page
    assert "Tests that students wrote" not in dashboard([of_nobody()], [ID])


def of_nobody() -> SubmissionResult:
    result = of("eve")
    result.problems[0].own_tests = None
    return result


def test_the_gradebook_names_what_is_open(tmp_path: Path):
    path = tmp_path / "gradebook.csv"
    write_gradebook(CLASS, [ID], path)
    with path.open(newline="") as file:
        assert [row["break_open"] for row in csv.DictReader(file)] == ["", "01", "", ""]
    write_gradebook(CLASS[:1], [ID], path)
    assert "break_open" not in path.read_text()


@pytest.mark.parametrize("result", CLASS, ids=lambda result: result.submission)
def test_it_comes_back_from_a_file(result):
    import msgspec

    data = msgspec.json.decode(msgspec.json.encode(result.to_json()))
    assert SubmissionResult.from_json(data) == result


def test_a_student_reads_no_name_of_a_file():
    told = feedback_text(CLASS[1], Policy.TITLES)
    assert "vmapped" not in told
    assert "Somebody will look" in told
    assert "10 of 10 for the core" in told
