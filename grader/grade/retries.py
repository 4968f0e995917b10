"""What may not have been the code's own fault is tried again, alone, before it counts.

That is a test that took too long while others were graded beside it; a submission that needs more
time than one gets at first, so that few slow ones don't make a class wait; and a process, of the
student's code or the one that grades, which something else on the machine killed.
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
    """Return how long all calls of a submission may take at first: ten times what right ones need.

    One that needs more is graded again when all others are done, with all the time it may take.
    """
    return max(_FIRST_SECONDS, 2 * settings.call_seconds)


def to_retry(submission: Submission, result: SubmissionResult, *, shared: bool) -> list[str]:
    """Return the ids of the problems that have to be tried again.

    Args:
        submission: what was graded.
        result: what came of it.
        shared: whether others were graded beside it.
    """
    if result.status == Status.INTERNAL and not any(p.id for p in result.problems):
        return [*submission.files]  # who graded it was lost
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
    """Grade some problems again, with nothing beside them.

    Args:
        grade: grades a submission.
        submission: what was graded.
        first: what came of it.
        ids: of the problems to try again.
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
