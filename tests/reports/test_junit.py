"""JUnit's file is one that its readers can take in: short, and it says where all of it stands."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from grader.reports.junit import MOST_LETTERS, MOST_TESTS, junit
from grader.result import Adjustment, ProblemResult, Status, SubmissionResult, TestResult

LONG = "softmax(x, dim=0)\nAll rows differ:\n" + "  row [0]: got [nan, nan]\n" * 30


def student(name: str, tests: list[TestResult], **more: object) -> SubmissionResult:
    problem = ProblemResult("01-softmax", "abc", tests, **more)  # type: ignore[arg-type]
    return SubmissionResult(name, 0, "sandbox", "", [problem])


def failing(count: int, message: str = LONG) -> list[TestResult]:
    passed = TestResult("test_first", "It has a name", False, 1, Status.PASSED)
    cases = [
        TestResult(f"test_{n}[{case}]", f"It does {n}", True, 1, Status.FAILED, message)
        for n in range(count)
        for case in "abc"
    ]
    return [passed, *cases]


def case_of(result: SubmissionResult) -> ElementTree.Element:
    found = ElementTree.fromstring(junit([result])).find("testsuite/testcase")
    assert found is not None
    return found


def test_a_case_is_a_problem() -> None:
    case = case_of(student("ada", failing(2)))
    assert (case.get("classname"), case.get("name")) == ("ada", "01-softmax")
    failure = case.find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.get("type")) == ("1 of 7 points", "failed")


def test_a_message_is_cut_and_the_place_of_the_whole_is_told() -> None:
    lines = str(case_of(student("ada", failing(MOST_TESTS + 3))).findtext("failure")).splitlines()
    assert lines[0].startswith("It does 0: failed: softmax(x, dim=0) All rows differ: row [0]: got")
    assert all(len(line) < MOST_LETTERS + 60 for line in lines)
    assert lines[-2:] == ["So failed 3 more tests.", "All of it stands in instructor/ada.html."]
    assert len(lines) == MOST_TESTS + 2


def test_tests_that_ended_alike_are_one_line() -> None:
    tests = [
        TestResult(f"test_{n}", "It", False, 1, Status.NOT_IMPLEMENTED, "not written")
        for n in range(9)
    ]
    told = str(case_of(student("ada", tests)).findtext("failure")).splitlines()
    assert told[0] == "All tests: not_implemented: not written"
    assert len(told) == 2


def test_what_passed_says_what_changed_its_mark() -> None:
    tests = [TestResult("test_1", "It", False, 1, Status.PASSED)]
    case = case_of(student("ada", tests, adjustments=[Adjustment(-0.5, "Late.")]))
    assert case.find("failure") is None
    assert case.findtext("system-out") == "The tests gave 1 point.\n-0.5 points: Late."


@pytest.mark.parametrize("tests", [[], [TestResult("grader", "-", True, 0, Status.INTERNAL, "x")]])
def test_a_problem_without_a_mark_is_well_formed(tests: list[TestResult]) -> None:
    root = ElementTree.fromstring(junit([student("ada", tests)]))
    assert root[0].get("errors" if tests else "failures") == "1"


def test_three_hundred_who_failed_much_are_less_than_3_mb() -> None:
    """Each has five problems with thirty tests that failed, in words of their own."""
    results = [student(f"student-{n:03}", failing(30)) for n in range(300)]
    for result in results:
        result.problems *= 5
    assert len(junit(results).encode()) < 3_000_000
