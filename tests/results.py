"""Build results without running tests."""

from __future__ import annotations

from typing import Any

from grader.gradebook.export.feedback_archive import page_text
from grader.reports.feedback import feedback_page
from grader.result import Isolation, Policy, ProblemResult, Status, SubmissionResult, TestResult


def doubles(status: Status = Status.PASSED, message: str = "") -> TestResult:
    """Return a result of `test_doubles`, a test of the small course."""
    return TestResult("test_doubles", "it doubles", False, 4, status, message)


def result_of(
    name: str,
    *problems: ProblemResult,
    isolation: Isolation | None = Isolation.SANDBOX,
    **more: Any,
) -> SubmissionResult:
    """Return the result of a submission with these problems.

    The default is the small course's problem with full marks.
    """
    found = [*problems] or [ProblemResult("01-doubling", "abc", [doubles()])]
    return SubmissionResult(name, 0, isolation, "", found, **more)


def feedback_text(result: SubmissionResult, policy: Policy) -> str:
    """Return the text of the feedback page."""
    return page_text(feedback_page(result, policy))
