"""JUnit's file is one that its readers can take in: short, and it says where all of it stands."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from grader.reports.junit import MOST_LETTERS, MOST_TESTS, junit
from grader.result import Adjustment, ProblemResult, Status, SubmissionResult, TestResult
from tests.results import result_of

LONG = "softmax(x, dim=0)\nAll rows differ:\n" + "  row [0]: got [nan, nan]\n" * 30


def student(name: str, tests: list[TestResult], **more: object) -> SubmissionResult:
    return result_of(name, ProblemResult("01-softmax", "abc", tests, **more))  # type: ignore[arg-type]


def failing(count: int, message: str = LONG) -> list[TestResult]:
    passed = TestResult("test_first", "It has a name", False, 1, Status.PASSED)
    cases = [
        TestResult(f"test_{n}[{case}]", f"It does {n}", True, 1, Status.FAILED, message)
        for n in range(count)
        for case in "abc"
    ]
    return [passed, *cases]


def cases_of(result: SubmissionResult) -> list[ElementTree.Element]:
    return ElementTree.fromstring(junit([result])).findall("testsuite/testcase")


def test_a_case_is_a_test() -> None:
    passed, failed, *_ = cases_of(student("ada", failing(2)))
    assert (passed.get("classname"), passed.get("name")) == ("ada.01-softmax", "test_first")
    assert passed.find("failure") is None
    failure = failed.find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.get("type")) == ("It does 0", "failed")


def test_a_message_is_cut_and_told_once() -> None:
    tests = failing(1) + [
        TestResult(f"test_more_{n}", "More", True, 1, Status.FAILED, f"{n}: {LONG}")
        for n in range(MOST_TESTS + 3)
    ]
    told = [case.findtext("failure") for case in cases_of(student("ada", tests))[1:]]
    assert str(told[0]).startswith("softmax(x, dim=0) All rows differ: row [0]: got")
    assert told[1:3] == ["As test_0[a].", "As test_0[a]."]
    assert all(len(str(text)) < MOST_LETTERS + 5 for text in told)
    assert [bool(text) for text in told[3:]] == [True] * (MOST_TESTS - 1) + [False] * 4


def test_a_suite_says_the_points_and_where_all_of_it_stands() -> None:
    result = student("ada", failing(2), adjustments=[Adjustment(-0.5, "Late.")])
    suite = ElementTree.fromstring(junit([result]))[0]
    told = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert told["01-softmax"] == "0.5 of 7 points"
    assert told["page"] == "instructor/ada.html"
    assert suite.findtext("system-out") == "The tests gave 1 point.\n-0.5 points: Late."


@pytest.mark.parametrize("tests", [[], [TestResult("grader", "-", True, 0, Status.INTERNAL, "x")]])
def test_a_problem_without_a_mark_is_well_formed(tests: list[TestResult]) -> None:
    root = ElementTree.fromstring(junit([student("ada", tests)]))
    assert root[0].get("errors") == str(len(tests))


@pytest.mark.slow
def test_three_hundred_who_failed_much_are_short_enough() -> None:
    """Each has five problems with ninety tests that failed. Some readers stop at 30 MB."""
    results = [student(f"student-{n:03}", failing(30)) for n in range(30)]
    for result in results:
        result.problems *= 5
    assert len(junit(results).encode()) < 25_000_000 / 10
