"""Grades many submissions: a few long-lived processes that each take one after the other.

The processes hold the tests and never run a student's code; that happens behind the boundary, in
processes of its own. So one of them ending is the grader's own fault, and the submission that it
was at is marked `internal`, never with a zero.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from grader.course import Course
from grader.grade import Settings, grade_submission, reference_submission
from grader.isolation import Boundary
from grader.isolation.start import end_with_parent
from grader.result import ProblemResult, Status, SubmissionResult, TestResult
from grader.submissions import Submission
from grader.verdict import OwnFault


class GraderError(Exception):
    """The grader itself failed; no mark can be trusted until that is mended."""


@dataclass
class _Job:
    process: BaseProcess
    connection: Connection
    submission: Submission | None = None


def grade_all(
    submissions: Sequence[Submission],
    course: Course,
    settings: Settings,
    jobs: int,
    on_result: Callable[[SubmissionResult], None],
) -> None:
    """Grade `submissions`, `jobs` at a time; results come as they are ready.

    The reference solutions go first: unless they reach full marks behind the same boundary, no
    student is graded.

    Args:
        submissions: in any order.
        course: whose tests to run.
        settings: seed, limits and level of isolation.
        jobs: how many processes grade at the same time.
        on_result: called once for each submission.

    Raises:
        GraderError: the course's own tests or solutions are broken, or no process can be started.
    """
    waiting = list(reversed(submissions))
    pool = [_start(course, settings) for _ in range(max(1, min(jobs, len(waiting))))]
    try:
        _require_full_marks(_ask(pool[0], reference_submission(course)))
        for job in pool:
            _give(job, waiting)
        while any(job.submission for job in pool):
            for job in _ready(pool):
                on_result(_finish(job))
                if not job.process.is_alive():
                    pool[pool.index(job)] = job = _start(course, settings)
                _give(job, waiting)
    finally:
        for job in pool:
            job.connection.close()
        for job in pool:
            job.process.join(5)
            job.process.kill()


def _start(course: Course, settings: Settings) -> _Job:
    # "spawn": the process that shows the progress bar has threads, so it must not be forked.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, course, settings), daemon=False)
    process.start()
    theirs.close()
    return _Job(process, ours)


def _serve(connection: Connection, course: Course, settings: Settings) -> None:
    """Grade what comes down the connection until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process in good order
    end_with_parent()  # should it be killed
    boundary = Boundary(
        # Never weaker than it says: who wants to grade without a sandbox has to ask for that.
        "sandbox" if settings.isolation == "auto" else settings.isolation,
        call_seconds=settings.call_seconds,
        memory_mb=settings.memory_mb,
        mark_changes=True,
    )
    with suppress(EOFError, BrokenPipeError):
        try:
            with boundary:
                while True:
                    submission: Submission = connection.recv()
                    connection.send(_answer(submission, course, settings, boundary))
        except OwnFault as error:
            connection.send(str(error))


def _answer(
    submission: Submission, course: Course, settings: Settings, boundary: Boundary
) -> SubmissionResult | str:
    try:
        return grade_submission(submission, course, settings, boundary)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _give(job: _Job, waiting: list[Submission]) -> None:
    if waiting:
        job.submission = waiting.pop()
        with suppress(BrokenPipeError):  # it died; _finish tells
            job.connection.send(job.submission)


def _ready(pool: list[_Job]) -> list[_Job]:
    busy = {job.connection: job for job in pool if job.submission}
    return [busy[connection] for connection in wait(list(busy))]  # type: ignore[index]


def _finish(job: _Job) -> SubmissionResult:
    """Return the job's result, or one that says that the grader failed."""
    assert job.submission is not None
    submission, job.submission = job.submission, None
    try:
        answer = job.connection.recv()
    except (EOFError, OSError):
        job.process.join(5)
        answer = f"the grader's process ended with {job.process.exitcode}"
    if isinstance(answer, SubmissionResult):
        return answer
    failed = internal_result(submission.name, answer)
    failed.members, failed.late = submission.members, submission.late
    return failed


def internal_result(name: str, reason: str) -> SubmissionResult:
    """Return the result of a submission that could not be graded through the grader's own fault."""
    test = TestResult("grader", "The grader failed", True, 0.0, Status.INTERNAL, reason)
    return SubmissionResult(name, 0, "", "", [ProblemResult("", tests=[test])], [reason])


def _ask(job: _Job, submission: Submission) -> SubmissionResult:
    job.submission = submission
    job.connection.send(submission)
    return _finish(job)


def _require_full_marks(reference: SubmissionResult) -> None:
    if reference.notes:
        raise GraderError(reference.notes[0])
    failed = [(p.id, t) for p in reference.problems for t in p.tests if t.status != Status.PASSED]
    if failed:
        problem, test = failed[0]
        raise GraderError(
            f"the reference solution of {problem} fails {test.id} ({test.status}), so its tests "
            f"are not right here:\n{test.message}"
        )
    empty = [problem.id for problem in reference.problems if not problem.tests]
    if empty:
        raise GraderError(f"no tests were found for {', '.join(empty)}")


def default_jobs() -> int:
    """Return how many submissions to grade at a time: one for each core that may be used."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
