"""A test that took too long while others were graded beside it is tried again, alone."""

from __future__ import annotations

from collections.abc import Callable

from grader.intake.submissions import Submission
from grader.result import Status, SubmissionResult


def timed_out(result: SubmissionResult) -> list[str]:
    """Return the ids of the problems in which a test did not come to an end."""
    return [p.id for p in result.problems if any(t.status is Status.TIMEOUT for t in p.tests)]


def alone(
    grade: Callable[[Submission], SubmissionResult],
    submission: Submission,
    shared: SubmissionResult,
) -> SubmissionResult:
    """Grade the problems that had a timeout again, with nothing beside them.

    Args:
        grade: grades a submission.
        submission: whose result had a timeout.
        shared: that result.
    """
    again = grade(submission.only(timed_out(shared)))
    if again.status == Status.INTERNAL:
        return again
    repeated = {problem.id: problem for problem in again.problems}
    for problem in repeated.values():
        problem.repeated = True
    shared.problems = [repeated.get(problem.id, problem) for problem in shared.problems]
    return shared
