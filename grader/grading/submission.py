"""Grades submissions: runs the course's tests against their files."""

from __future__ import annotations

from grader.course import Course, Problem
from grader.errors import CannotLoad
from grader.grading.provenance import basis, grounds, own_sha256
from grader.grading.settings import Settings
from grader.intake.submissions import StudentFile, Submission, read_source
from grader.isolation import Boundary, RemoteProblem
from grader.result import ProblemResult, Status, SubmissionResult
from grader.testing.session import Session
from grader.testing.suite import Suite

# The boundary keeps the time of each call. This is for the trusted side, should it ever hang.
TEST_SECONDS = 600.0


class Grader:
    """Grades submissions, one after the other: all tests, both halves, behind the boundary.

    The tests are collected once. What later happens to their files changes nothing; what a
    submission's marks rest on is told as it was when they were collected.

    Args:
        course: whose tests to run.
        settings: the seed is used here.
        boundary: behind which students' code runs.

    Raises:
        CourseError: a test file itself can't be run.
    """

    def __init__(self, course: Course, settings: Settings, boundary: Boundary) -> None:
        self._settings = settings
        self._boundary = boundary
        self._problems = course.problems()
        self._own_sha256 = own_sha256(course)
        self._grounds = grounds(course, settings)
        self._suite = Suite(self._problems, course.root, timeout=TEST_SECONDS)

    def grade(self, submission: Submission) -> SubmissionResult:
        """Return the result of the problems that a submission has an entry for."""
        files = Opened(submission, self._boundary)
        session = Session(files, hidden=True, seed=self._settings.seed, watch=False)
        problems = [problem for problem in self._problems if problem.id in submission.files]
        try:
            self._suite.run(session, problems)
        finally:
            files.close()
        found = []
        for problem in problems:
            result = session.results.get(problem.id, ProblemResult(problem.id))
            file = submission.files[problem.id]
            result.sha256 = file.sha256
            result.notes = [file.reason] if file.reason else []
            result.basis = basis(file, self._grounds[problem.id])
            found.append(result)
        level = self._boundary.level
        return assemble(submission, self._settings, level, self._own_sha256, found)


def assemble(
    submission: Submission,
    settings: Settings,
    level: str,
    grader_sha256: str,
    problems: list[ProblemResult],
) -> SubmissionResult:
    """Return the result of a submission whose problems were graded, now or earlier."""
    return SubmissionResult(
        submission.name,
        settings.seed,
        level,
        grader_sha256,
        problems,
        notes=submission.notes,
        members=submission.members,
        late=submission.late,
    )


def reference_submission(course: Course) -> Submission:
    """Return the reference solutions as a submission: what has full marks if all is well."""
    files = {problem.id: read_source(course.solution(problem)) for problem in course.problems()}
    return Submission("the reference solutions", files)


class Opened:
    """Opens each of a submission's files once, behind the boundary.

    Args:
        submission: whose files.
        boundary: behind which they run.
    """

    def __init__(self, submission: Submission, boundary: Boundary) -> None:
        self._files = submission.files
        self._boundary = boundary
        self._budget = boundary.budget()
        self._opened: dict[str, RemoteProblem | CannotLoad] = {}

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> RemoteProblem:
        """Return what stands for the problem's module; may raise CannotLoad."""
        if problem.id not in self._opened:
            self._opened[problem.id] = self._open(self._files[problem.id], forbidden)
        opened = self._opened[problem.id]
        if isinstance(opened, CannotLoad):
            raise opened.afresh()
        return opened

    def reopen(self, problem: Problem, forbidden: tuple[str, ...]) -> RemoteProblem:
        """Load the file in a new process and return what stands for its module."""
        self(problem, forbidden).close()  # what could not be loaded isn't tried again
        del self._opened[problem.id]
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
            return self._boundary.open(file.source, forbidden, self._budget)
        except CannotLoad as cannot_load:
            return cannot_load
