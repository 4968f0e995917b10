"""Grade one submission: run the course's tests on its files."""

from __future__ import annotations

import socket
from collections.abc import Collection

from grader.course import Course
from grader.grade.outcome import assemble
from grader.grade.provenance import (
    common_provenance,
    grader_sha256,
    provenance,
    words_sha256,
)
from grader.grade.recorded import IN_WORKERS, RecordedTests
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.result import SubmissionResult
from grader.run.mistakes_made import name_mistakes
from grader.run.session import Session
from grader.run.suite import Suite
from grader.sandbox.sandbox import Sandbox


def sandbox_for(
    settings: Settings, prefork_server: socket.socket | None = None, *, capture: bool = False
) -> Sandbox:
    """Return the sandbox for student code. The caller must use it as a context manager.

    Args:
        settings: limits and level of isolation.
        prefork_server: the connection to this process's prefork server, if there is one.
        capture: whether to keep the output of student code.
    """
    return Sandbox(
        settings.isolation,
        call_seconds=settings.call_seconds,
        memory_mb=settings.memory_mb,
        capture=capture,
        prefork_server=prefork_server,
    )


class Grader:
    """Grades submissions one after the other, with all visible and hidden tests, in the sandbox.

    The tests are collected once. Later changes of the test files have no effect, and the provenance
    of marks contains the hash of the collected files.

    Args:
        course: the course with the tests.
        settings: the settings. Only the seed is used.
        sandbox: the sandbox for student code.
        needed: ids of the problems in the submissions; None for all problems.

    Attributes:
        sandbox: the sandbox for student code.

    Raises:
        CourseError: a test file itself can't be run.
    """

    def __init__(
        self,
        course: Course,
        settings: Settings,
        sandbox: Sandbox,
        needed: Collection[str] | None = None,
    ) -> None:
        self._settings = settings
        self.sandbox = sandbox
        self._problems = course.problems()
        self._grader_sha256 = grader_sha256(course)
        self._common = common_provenance(course, settings)
        self._words = {problem.id: words_sha256(problem) for problem in self._problems}
        asked = [problem for problem in self._problems if needed is None or problem.id in needed]
        self._tests = RecordedTests(Suite(asked, course.root).tests, sandbox)

    def grade(self, submission: Submission, seconds: float | None = None) -> SubmissionResult:
        """Grade the problems in `submission.files`.

        Args:
            submission: the submission.
            seconds: the time limit for all calls of student code; None for the default limit.
        """
        session = Session(IN_WORKERS, hidden=True, seed=self._settings.seed)
        problems = [problem for problem in self._problems if problem.id in submission.files]
        budget = self.sandbox.budget(seconds)
        tried = {}
        for problem in problems:
            file = submission.files[problem.id]
            tried[problem.id] = self._tests.run(session, problem, file, budget).tried
        name_mistakes(session)
        results = []
        for problem in problems:
            result = session.results.get(problem.id, problem.result())
            file = submission.files[problem.id]
            result.sha256 = file.sha256
            result.notes = [file.reason] if file.reason else []
            notes = dict.fromkeys(tried[problem.id])
            result.notes += [f"{problem.id[:2]}: {text}" for text in notes]
            result.provenance = provenance(file, self._common[problem.id])
            result.provenance["words"] = self._words[problem.id]
            results.append(result)
        return assemble(submission, self._settings, self._grader_sha256, results)
