"""Grades one submission: runs the course's tests against its files."""

from __future__ import annotations

from dataclasses import dataclass

from grader.course import Course, Problem, own_sha256
from grader.isolation import Boundary, RemoteProblem
from grader.plugin import Session
from grader.result import ProblemResult, Status, SubmissionResult
from grader.submissions import StudentFile, Submission, read_source
from grader.testing import run_tests
from grader.verdict import CannotLoad

# The boundary keeps the time of each call. This is for the trusted side, should it ever hang.
_TEST_SECONDS = 600.0


@dataclass(frozen=True)
class Settings:
    """What an instructor can set for a run of the grader.

    Attributes:
        seed: what the tests' inputs are drawn from.
        call_seconds: how long one call of a student's function may take.
        memory_mb: how much memory a student's process may take beyond what torch needs.
        isolation: `auto`, `sandbox` or `process`.
    """

    seed: int = 0
    call_seconds: float = 10.0
    memory_mb: int = 1024
    isolation: str = "auto"


def grade_submission(
    submission: Submission, course: Course, settings: Settings, boundary: Boundary
) -> SubmissionResult:
    """Run all tests, both halves, of the problems that a submission has an entry for.

    Args:
        submission: what the student handed in.
        course: whose tests to run.
        settings: the seed is used here.
        boundary: behind which the student's code runs.

    Raises:
        CourseError: a test file itself can't be run.
    """
    files = _Opened(submission, boundary)
    problems = [problem for problem in course.problems() if problem.id in submission.files]
    session = Session(files, hidden=True, seed=settings.seed, watch=False, timeout=_TEST_SECONDS)
    try:
        run_tests(problems, session, course.root)
    finally:
        files.close()
    result = SubmissionResult(
        submission.name, settings.seed, boundary.level, own_sha256(course), notes=submission.notes
    )
    result.members, result.late = submission.members, submission.late
    for problem in problems:
        found = session.results.get(problem.id, ProblemResult(problem.id))
        file = submission.files[problem.id]
        found.sha256 = file.sha256
        found.notes = [file.reason] if file.reason else []
        result.problems.append(found)
    return result


def reference_submission(course: Course) -> Submission:
    """Return the reference solutions as a submission: what has full marks if all is well."""
    files = {problem.id: read_source(course.solution(problem)) for problem in course.problems()}
    return Submission("the reference solutions", files)


class _Opened:
    """Opens each of a submission's files once."""

    def __init__(self, submission: Submission, boundary: Boundary) -> None:
        self._files = submission.files
        self._boundary = boundary
        self._opened: dict[str, RemoteProblem | CannotLoad] = {}

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> RemoteProblem:
        if problem.id not in self._opened:
            self._opened[problem.id] = self._open(self._files[problem.id], forbidden)
        opened = self._opened[problem.id]
        if isinstance(opened, CannotLoad):
            raise opened
        return opened

    def reopen(self, problem: Problem, forbidden: tuple[str, ...]) -> RemoteProblem:
        """Load the file in a new process and return what stands for its module."""
        opened = self._opened.pop(problem.id, None)
        if isinstance(opened, RemoteProblem):
            opened.close()
        return self(problem, forbidden)

    def close(self) -> None:
        """End the processes that the files run in."""
        for opened in self._opened.values():
            if isinstance(opened, RemoteProblem):
                opened.close()

    def _open(self, file: StudentFile, forbidden: tuple[str, ...]) -> RemoteProblem | CannotLoad:
        if file.source is None:
            return CannotLoad(Status.ERROR if file.bad else Status.MISSING, file.reason)
        try:
            return self._boundary.open(file.source, forbidden)
        except CannotLoad as cannot_load:
            return cannot_load
