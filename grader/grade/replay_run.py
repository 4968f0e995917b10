"""Runs a test of one submission again: what a trusted process does for `replay`."""

from __future__ import annotations

import socket
import traceback

import torch

from grader.course import SUBMISSION_FILE, Course, Problem
from grader.grade.recorded import RecordedTests, Recording
from grader.grade.records_shown import records_shown
from grader.grade.replay import Rerun
from grader.grade.settings import Settings
from grader.grade.submission import BY_RECORDS, TEST_SECONDS, Opened, boundary_for
from grader.intake.handed_in import StudentFile, Submission
from grader.run.session import Session
from grader.run.suite import Suite


def run_again(
    prefork_server: socket.socket | None,
    submission: Submission,
    problem: Problem,
    test: str,
    course: Course,
    settings: Settings,
) -> Rerun:
    """Run one test of a problem on a submission.

    Args:
        prefork_server: the connection to one that was started with this process, if any was.
        submission: whose code runs.
        problem: whose test it is.
        test: its name, or the id of a case.
        course: where the problem is.
        settings: limits, seed and level of isolation.

    Raises:
        CourseError: there is no such test.
        InternalError: the boundary can't be had.
    """
    torch.set_num_threads(1)
    witness = _Witness(problem)
    with boundary_for(settings, prefork_server, capture=True) as boundary:
        files = Opened(submission, boundary)
        session = Session(
            files,
            hidden=True,
            seed=settings.seed,
            watch=False,
            diagnose=False,
            on_exception=witness,
        )
        checks: dict[str, str] = {}
        suite = Suite([problem], course.root, timeout=TEST_SECONDS)
        records = RecordedTests(suite.tests if BY_RECORDS else (), boundary, quotes_hidden=True)
        if records.has(problem):
            file = submission.files[problem.id]
            recording = records.run(session, problem, file, files.budget, test)
            witness.take(recording)
            boundary.printed.extend(session.printed[problem.id].values())
            if recording.messages:
                reference = StudentFile(course.solution(problem).read_bytes())
                again = Session(files, hidden=True, seed=settings.seed, diagnose=False)
                right = records.run(again, problem, reference, boundary.budget(), test)
                checks = _checks(recording, right)
        else:
            try:
                suite.run(session, tests=[test])
            finally:
                files.close()
        tests = session.results[problem.id].tests
        return Rerun(tests, witness.tracebacks, "".join(boundary.printed), checks)


def _checks(student: Recording, reference: Recording) -> dict[str, str]:
    """Return for each test, by its id, what both files gave to its checks."""
    return {
        test.id: records_shown(
            student.tests.expected(test, student.session.seed),
            student.messages[test.id],
            reference.messages[test.id],
        )
        for test in student.found
        if test.id in student.messages and test.id in reference.messages
    }


class _Witness:
    """Keeps through which lines each test of a problem ended.

    Args:
        problem: whose tests.
    """

    def __init__(self, problem: Problem) -> None:
        self._test_file = problem.test_file
        self.tracebacks: dict[str, str] = {}

    def __call__(self, test: str, exception: BaseException) -> None:
        """Keep the traceback of a test that didn't pass, from the test on."""
        frames = traceback.extract_tb(exception.__traceback__)
        files = [frame.filename for frame in frames]
        file = str(self._test_file)
        # What comes before the test is the grader's.
        first = files.index(file) if file in files else len(files)
        self.tracebacks[test] = "".join(traceback.format_list(frames[first:]))

    def take(self, recording: Recording) -> None:
        """Keep the tracebacks of tests that ran in a worker."""
        files = {True: str(self._test_file), False: SUBMISSION_FILE}
        lines = {
            True: self._test_file.read_text(encoding="utf-8").splitlines(),
            False: recording.source.decode(errors="replace").splitlines(),
        }
        for test, went in recording.went.items():
            frames = [
                traceback.FrameSummary(files[own], number, name, line=line)
                for number, name, own in went.steps
                for line in [*lines[own][number - 1 : number], ""][:1]
            ]
            if frames:
                self.tracebacks[test] = "".join(traceback.format_list(frames))
