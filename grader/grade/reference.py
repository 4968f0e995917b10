"""Check the reference solutions. No result counts unless they get full marks."""

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
        InternalError: a test failed, or a problem has no tests.
    """
    if reference.notes:
        raise InternalError(reference.notes[0])
    failed = [(p.id, t) for p in reference.problems for t in p.tests if t.status != Status.PASSED]
    if failed:
        problem, test = failed[0]
        raise InternalError(
            f"the reference solution of {problem} fails {test.id} ({test.status}), so its tests "
            f"are wrong or do not work on this machine:\n{test.message}"
        )
    empty = [problem.id for problem in reference.problems if not problem.tests]
    if empty:
        raise InternalError(f"no tests were found for {', '.join(empty)}")
