"""Grade a submission again, alone, after a failure that its code may not have caused.

Such failures are: a test took too long while other submissions were graded; a submission reached
its first time limit, which is short so that slow ones don't delay a class; another program killed a
process of student code or of the grader.
"""

from __future__ import annotations

from collections.abc import Callable

from grader.errors import TIME_USED_UP
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.result import Status, SubmissionResult

GRADED_AGAIN = (
    "This failed twice, through no fault of the student's. No mark was given; the next run grades "
    "it again."
)


_FIRST_SECONDS = 20.0


def first_seconds(settings: Settings) -> float:
    """Return the first time limit of a submission, ten times that of correct ones.

    A submission that needs more is graded again after all others, with the full time limit.
    """
    return max(_FIRST_SECONDS, 2 * settings.call_seconds)


def to_retry(submission: Submission, result: SubmissionResult, *, shared: bool) -> list[str]:
    """Return the ids of the problems that have to be tried again.

    Args:
        submission: the graded submission.
        result: its result.
        shared: whether others were graded at the same time.
    """
    if result.status == Status.INTERNAL and not any(p.id for p in result.problems):
        return [*submission.files]  # the grading process was lost
    doubtful = {Status.INTERNAL, Status.TIMEOUT} if shared else {Status.INTERNAL}
    return [
        problem.id
        for problem in result.problems
        if any(test.status in doubtful or TIME_USED_UP in test.message for test in problem.tests)
    ]


def alone(
    grade: Callable[[Submission], SubmissionResult],
    submission: Submission,
    first: SubmissionResult,
    ids: list[str],
) -> SubmissionResult:
    """Grade some problems again, alone.

    Args:
        grade: grades a submission.
        submission: the graded submission.
        first: its first result.
        ids: the ids of the problems to grade again.
    """
    again = grade(submission.only(ids))
    repeated = {problem.id: problem for problem in again.problems}
    if len(ids) == len(submission.files) or not repeated.keys() <= submission.files.keys():
        result = again
    else:
        result = first
        result.problems = [repeated.get(problem.id, problem) for problem in first.problems]
    for problem in again.problems:
        problem.repeated = bool(problem.id)
    if result.status == Status.INTERNAL:
        result.notes = [*result.notes, GRADED_AGAIN]
    return result
