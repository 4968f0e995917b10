"""Grade a submission again if something other than its code may have caused a failure.

Meanwhile no other submission is graded. These failures lead to a second attempt:

- A test took too long while other submissions were graded at the same time.
- A submission reached its first time limit, which is short so that slow code doesn't delay a class.
- Another program killed a process with student code, or a process of the grader.
"""

from __future__ import annotations

from collections.abc import Callable

from grader.errors import TIME_USED_UP
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.result import Status, SubmissionResult

GRADED_AGAIN = (
    "Grading failed twice, and the student's code is not the reason. No mark was given. The next "
    "run grades this problem again."
)


_FIRST_SECONDS = 20.0


def first_seconds(settings: Settings) -> float:
    """Return the first time limit of a submission in seconds.

    Correct submissions need about a tenth of this limit. A submission that exceeds it is graded
    again after all others, with the full time limit.
    """
    return max(_FIRST_SECONDS, 2 * settings.call_seconds)


def to_retry(submission: Submission, result: SubmissionResult, *, shared: bool) -> list[str]:
    """Return the ids of the problems to grade again.

    Args:
        submission: the graded submission.
        result: its result.
        shared: whether other submissions were graded at the same time.
    """
    if result.status == Status.INTERNAL and not any(p.id for p in result.problems):
        return [*submission.files]  # the grading process crashed
    doubtful = {Status.INTERNAL, Status.TIMEOUT} if shared else {Status.INTERNAL}
    return [
        problem.id
        for problem in result.problems
        if any(test.status in doubtful or TIME_USED_UP in test.message for test in problem.tests)
    ]


def grade_again(
    grade: Callable[[Submission], SubmissionResult],
    submission: Submission,
    first: SubmissionResult,
    ids: list[str],
) -> SubmissionResult:
    """Grade some problems again. Return the first result with the new results of these problems.

    Args:
        grade: a function that grades a submission while no other submission is graded.
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
