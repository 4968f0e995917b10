"""Tests about the change run first after a file was saved."""

from __future__ import annotations

import pytest

from grader.result import ProblemResult, Status, TestResult
from grader.student.ahead import changed_names, first_tests

BEFORE = "def f(x):\n    return x\n\nclass G:\n    a = 1\n"


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        (BEFORE, set()),
        (BEFORE + "# a comment", set()),
        (BEFORE.replace("return x", "return 2 * x"), {"f"}),
        (BEFORE.replace("a = 1", "a = 2"), {"G"}),
        (BEFORE + "def h(): pass", {"h"}),
        ("def f(x) return", set()),
    ],
)
def test_what_was_changed(now: str, changed: set[str]) -> None:
    assert changed_names(BEFORE, now) == changed


def ended(id: str, title: str, status: Status = Status.PASSED, seconds: float = 0) -> TestResult:
    return TestResult(id, title, False, 1, status, seconds=seconds)


def test_what_failed_and_is_about_the_change_comes_first() -> None:
    tests = [
        ended("a", "g doubles"),
        ended("b", "F doubles"),
        ended("c", "g adds", Status.FAILED),
        ended("d", "f adds", Status.ERROR),
    ]
    assert first_tests(ProblemResult("01", tests=tests), {"f"}) == ["d", "c", "b"]
    assert first_tests(ProblemResult("01", tests=tests), set()) == ["c", "d"]
    assert first_tests(ProblemResult("01"), {"f"}) == []


def test_they_take_little_time() -> None:
    slow = [ended(str(n), "f", Status.FAILED, seconds=1.5) for n in range(4)]
    assert first_tests(ProblemResult("07", tests=slow), set()) == ["0"]
    quick = [ended(str(n), "f", Status.FAILED) for n in range(40)]
    assert len(first_tests(ProblemResult("07", tests=quick), set())) == 5
