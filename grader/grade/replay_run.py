"""Run a test of one submission again, in the trusted process of `replay`."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Mapping

import torch

from grader.course import SUBMISSION_FILE, Course, Problem
from grader.grade.recorded import IN_WORKERS, RecordedTests, Recording
from grader.grade.records_shown import records_shown
from grader.grade.replay import Rerun
from grader.grade.settings import Settings
from grader.grade.submission import sandbox_for
from grader.intake.handed_in import StudentFile, Submission
from grader.run.judging import RunDetails
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
        prefork_server: the connection to this process's prefork server, if there is one.
        submission: the submission with the code.
        problem: the problem with the test.
        test: the name of the test, or the id of one parametrized case.
        course: the course with the problem.
        settings: limits, seed and level of isolation.

    Raises:
        CourseError: the problem has no such test.
        InternalError: the sandbox can't be started.
    """
    torch.set_num_threads(1)
    with sandbox_for(settings, prefork_server, capture=True) as sandbox:
        session = Session(IN_WORKERS, hidden=True, seed=settings.seed)
        tests = RecordedTests(Suite([problem], course.root).tests, sandbox, quotes_hidden=True)
        file = submission.files[problem.id]
        recording = tests.run(session, problem, file, sandbox.budget(), test)
        checks: dict[str, str] = {}
        if recording.messages:
            reference = StudentFile(course.solution(problem).read_bytes())
            again = Session(IN_WORKERS, hidden=True, seed=settings.seed)
            right = tests.run(again, problem, reference, sandbox.budget(), test)
            checks = _checks(recording, right)
        details = {id: RunDetails.read(message) for id, message in recording.messages.items()}
        printed = "".join(each.printed for each in details.values())
        results = session.results[problem.id].tests
        return Rerun(results, _tracebacks(problem, recording.source, details), printed, checks)


def _checks(student: Recording, reference: Recording) -> dict[str, str]:
    """Map the id of each test to the result of `records_shown`."""
    return {
        test.id: records_shown(
            student.tests.expected(test, student.session.seed),
            student.messages[test.id],
            reference.messages[test.id],
        )
        for test in student.verdicts
        if test.id in student.messages and test.id in reference.messages
    }


def _tracebacks(
    problem: Problem, source: bytes, details: Mapping[str, RunDetails]
) -> dict[str, str]:
    """Map the id of each test that did not pass to its traceback."""
    files = {True: str(problem.test_file), False: SUBMISSION_FILE}
    lines = {
        True: problem.test_file.read_text(encoding="utf-8").splitlines(),
        False: source.decode(errors="replace").splitlines(),
    }
    tracebacks = {}
    for test, each in details.items():
        frames = [
            traceback.FrameSummary(files[is_test_file], number, name, line=line)
            for number, name, is_test_file in each.steps
            for line in [*lines[is_test_file][number - 1 : number], ""][:1]
        ]
        if frames:
            tracebacks[test] = "".join(traceback.format_list(frames))
    return tracebacks
