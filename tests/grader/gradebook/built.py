"""Build results without running tests, and adjust them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grader.gradebook.adjusting import ClassBook
from grader.gradebook.folder import GradebookFolder
from grader.result import ProblemResult, Status, SubmissionResult, TestResult
from tests.results import result_of


def problem(id: str, points: float, max: float, **more: Any) -> ProblemResult:
    """Return a problem's result with two tests. The second test is parametrized with two values."""
    rest = (max - points) / 2
    tests = [
        TestResult("test_first", "It adds", False, points, Status.PASSED),
        TestResult("test_cases[a]", "It holds", True, rest, Status.FAILED, "wrong"),
        TestResult("test_cases[b]", "It holds", True, rest, Status.FAILED, "wrong"),
    ]
    return ProblemResult(id, "abc", tests, reason="new", **more)


def result(name: str, *problems: ProblemResult, **more: Any) -> SubmissionResult:
    """Return a submission's result. The default problem is 03 with 20 of 25 points."""
    found = problems or [problem("03-scaled-attention", 20, 25)]
    return result_of(name, *found, **{"identity": name, **more})


def adjusted(
    results: Iterable[SubmissionResult], book: GradebookFolder
) -> tuple[list[SubmissionResult], list[str]]:
    """Return the adjusted results, and the messages about the gradebook folder."""
    made = ClassBook(results, book)
    return made.results, made.messages
