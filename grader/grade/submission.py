"""Grades one submission: runs the course's tests against its files."""

from __future__ import annotations

import socket
from collections.abc import Collection

from grader.boundary.boundary import Boundary
from grader.boundary.proxy.caller import RemoteProblem
from grader.course import Course, Problem
from grader.errors import CannotLoad
from grader.grade.outcome import assemble
from grader.grade.provenance import (
    common_provenance,
    grader_sha256,
    provenance,
    words_sha256,
)
from grader.grade.recorded import RecordedTests
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission
from grader.result import Status, SubmissionResult
from grader.run.session import Session
from grader.run.suite import Suite

BY_RECORDS = True
"""Whether tests that are written for it run in the process of the student's code."""

# The boundary keeps the time of each call. This is for the trusted side, should it ever hang; for
# it, waiting for a worker on a busy machine is sleep.
TEST_SECONDS = 2400.0


def boundary_for(
    settings: Settings, prefork_server: socket.socket | None = None, *, capture: bool = False
) -> Boundary:
    """Return the boundary that students' code is graded behind, to be entered.

    Args:
        settings: limits and level of isolation.
        prefork_server: the connection to one that was started with this process.
        capture: whether to keep what student code prints.
    """
    return Boundary(
        settings.isolation,
        call_seconds=settings.call_seconds,
        memory_mb=settings.memory_mb,
        capture=capture,
        prefork_server=prefork_server,
    )


class Grader:
    """Grades submissions, one after the other: all tests, both halves, behind the boundary.

    The tests are collected once. What later happens to their files changes nothing; what a
    submission's marks rest on is told as it was when they were collected.

    Args:
        course: whose tests to run.
        settings: the seed is used here.
        boundary: behind which students' code runs.
        needed: ids of the problems that submissions will come for; None for all.
        by_records: whether tests that are written for it run in the process of the student's code.

    Attributes:
        boundary: the same.

    Raises:
        CourseError: a test file itself can't be run.
    """

    def __init__(
        self,
        course: Course,
        settings: Settings,
        boundary: Boundary,
        needed: Collection[str] | None = None,
        *,
        by_records: bool = BY_RECORDS,
    ) -> None:
        self._settings = settings
        self.boundary = boundary
        self._problems = course.problems()
        self._grader_sha256 = grader_sha256(course)
        self._common = common_provenance(course, settings)
        self._words = {problem.id: words_sha256(problem) for problem in self._problems}
        asked = [problem for problem in self._problems if needed is None or problem.id in needed]
        self._suite = Suite(asked, course.root, timeout=TEST_SECONDS)
        self._records = RecordedTests(self._suite.tests if by_records else (), boundary)

    def grade(self, submission: Submission, seconds: float | None = None) -> SubmissionResult:
        """Return the result of the problems that a submission has an entry for.

        Args:
            submission: what to grade.
            seconds: how long all calls of its code may take, if that is less than usual.
        """
        files = Opened(submission, self.boundary, seconds)
        session = Session(files, hidden=True, seed=self._settings.seed, watch=False)
        problems = [problem for problem in self._problems if problem.id in submission.files]
        try:
            for problem in filter(self._records.has, problems):
                file = submission.files[problem.id]
                recording = self._records.run(session, problem, file, files.budget)
                files.note(problem, recording.tried)
            self._suite.run(session, [each for each in problems if not self._records.has(each)])
        finally:
            files.close()
        found = []
        for problem in problems:
            result = session.results.get(problem.id, problem.result())
            file = submission.files[problem.id]
            result.sha256 = file.sha256
            result.notes = [file.reason] if file.reason else []
            result.notes += files.tried(problem)
            result.provenance = provenance(file, self._common[problem.id])
            result.provenance["words"] = self._words[problem.id]
            found.append(result)
        return assemble(submission, self._settings, self._grader_sha256, found)


class Opened:
    """Opens each of a submission's files behind the boundary.

    One problem's processes live at a time, one for each set of forbidden functions. A file that is
    asked for again after another one is loaded again.

    Args:
        submission: whose files.
        boundary: behind which they run.
        seconds: how long all calls of its code may take, if that is less than usual.

    Attributes:
        budget: how long its code may take.
    """

    def __init__(
        self, submission: Submission, boundary: Boundary, seconds: float | None = None
    ) -> None:
        self._files = submission.files
        self._boundary = boundary
        self.budget = boundary.budget(seconds)
        self._tried: dict[str, list[str]] = {}
        self._opened: dict[tuple[str, tuple[str, ...]], RemoteProblem | CannotLoad] = {}

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> RemoteProblem:
        """Return what stands for the problem's module, for another test; may raise CannotLoad."""
        self._end_all_but(problem.id)
        if (problem.id, forbidden) not in self._opened:
            file = self._files[problem.id]
            self._opened[problem.id, forbidden] = self._open(file, forbidden)
        opened = self._opened[problem.id, forbidden]
        if isinstance(opened, CannotLoad):
            raise opened.without_traceback()
        opened.begin_test()
        return opened

    def forget(self, problem: Problem) -> None:
        """Load the file in a new process next time; what could not be loaded isn't tried again."""
        for key, opened in list(self._opened.items()):
            if key[0] == problem.id and isinstance(opened, RemoteProblem):
                opened.close()
                del self._opened[key]

    def tried(self, problem: Problem) -> list[str]:
        """Return what the problem's file tried while it was loaded, in sentences."""
        opened = [each for (id, _), each in self._opened.items() if id == problem.id]
        tried = [text for each in opened if isinstance(each, RemoteProblem) for text in each.tried]
        tried = [*self._tried.get(problem.id, []), *tried]
        return [f"{problem.id[:2]}: {text}" for text in dict.fromkeys(tried)]

    def note(self, problem: Problem, tried: list[str]) -> None:
        """Note what a problem's file tried in another process while it was loaded."""
        self._tried[problem.id] = tried

    def close(self) -> None:
        """End the processes that the files run in."""
        self._end_all_but("")

    def _end_all_but(self, id: str) -> None:
        for (other, _), opened in self._opened.items():
            if other != id and isinstance(opened, RemoteProblem):
                opened.close()

    def _open(self, file: StudentFile, forbidden: tuple[str, ...]) -> RemoteProblem | CannotLoad:
        if file.source is None:
            return CannotLoad(Status.ERROR if file.bad else Status.MISSING, file.reason)
        try:
            return self._boundary.open(file.source, forbidden, self.budget)
        except CannotLoad as cannot_load:
            return cannot_load
