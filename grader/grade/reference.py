"""Grade the reference solutions: unless they have full marks, no result counts."""

from __future__ import annotations

from grader.course import Course
from grader.errors import InternalError
from grader.intake.handed_in import Submission
from grader.intake.submissions import read_source
from grader.result import Status, SubmissionResult


def reference_submission(course: Course) -> Submission:
    """Return the reference solutions as a submission, which must get full marks."""
    files = {problem.id: read_source(course.solution(problem)) for problem in course.problems()}
    return Submission("the reference solutions", files)


def require_full_marks(reference: SubmissionResult) -> None:
    """Require that the reference solutions passed all tests.

    Raises:
        InternalError: they did not.
    """
    if reference.notes:
        raise InternalError(reference.notes[0])
    failed = [(p.id, t) for p in reference.problems for t in p.tests if t.status != Status.PASSED]
    if failed:
        problem, test = failed[0]
        raise InternalError(
            f"the reference solution of {problem} fails {test.id} ({test.status}), so its tests "
            f"are not right here:\n{test.message}"
        )
    empty = [problem.id for problem in reference.problems if not problem.tests]
    if empty:
        raise InternalError(f"no tests were found for {', '.join(empty)}")
