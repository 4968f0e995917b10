"""Grades many submissions: a few long-lived processes that each take one after the other.

The processes hold the tests and never run a student's code; that happens behind the boundary, in
processes of its own. So one of them ending is the grader's own fault, and the submission that it
was at is marked `internal`, never with a zero.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch

from grader.course import Course
from grader.errors import CourseError, GraderError, InternalError
from grader.grading.settings import Settings
from grader.grading.submission import Grader, reference_submission
from grader.intake.submissions import Submission
from grader.isolation import Boundary
from grader.isolation.spawn import end_with_parent
from grader.result import ProblemResult, Status, SubmissionResult, TestResult


@dataclass
class _Job:
    process: BaseProcess
    connection: Connection
    core: int | None
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
    student is graded. Problems in which a test took too long while others were graded at the same
    time are graded once more at the end, alone, and that result counts.

    Args:
        submissions: in any order; of each, the problems that it has an entry for are graded.
        course: whose tests to run.
        settings: seed, limits and level of isolation.
        jobs: how many processes grade at the same time.
        on_result: called once for each submission.

    Raises:
        GraderError: the course's own tests or solutions are broken, or no process can be started.
    """
    waiting = list(reversed(submissions))
    slow: list[tuple[Submission, SubmissionResult]] = []
    with _pool(course, settings, min(jobs, len(waiting))) as pool:
        needed = {id for submission in submissions for id in submission.files}
        require_full_marks(_ask(pool[0], reference_submission(course).only(needed)))
        for job in pool:
            _give(job, waiting)
        while any(job.submission for job in pool):
            for job in _ready(pool):
                submission, result = _finish(job)
                if len(pool) > 1 and timed_out(result):
                    slow.append((submission, result))
                else:
                    on_result(result)
                _give(_alive(job, pool, course, settings), waiting)
        for submission, result in slow:
            job = _alive(pool[0], pool, course, settings)
            on_result(alone(partial(_ask, job), submission, result))


@contextmanager
def _pool(course: Course, settings: Settings, size: int) -> Iterator[list[_Job]]:
    """Start processes that grade, and end them: at once if something went wrong."""
    pool: list[_Job] = []
    cores = itertools.cycle(_cores())
    try:
        for _ in range(max(1, size)):
            pool.append(_start(course, settings, next(cores)))
        yield pool
    except BaseException:
        for job in pool:
            job.process.kill()
        raise
    finally:
        with _undisturbed():
            for job in pool:
                job.connection.close()
            for job in pool:
                job.process.join(5)
                job.process.kill()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C for a moment; a process that is started meanwhile ignores it for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cores() -> list[int | None]:
    """Return the cores to share out among jobs; None stands for any."""
    if not hasattr(os, "sched_getaffinity"):
        return [None]
    cores = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(cores)  # not the same for each run that has fewer jobs than cores
    return [*cores[first:], *cores[:first]]


def _start(course: Course, settings: Settings, core: int | None) -> _Job:
    # "spawn": the process that shows the progress bar has threads, so it must not be forked.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, course, settings, core), daemon=False)
    with _undisturbed():
        process.start()
    theirs.close()
    return _Job(process, ours, core)


def _alive(job: _Job, pool: list[_Job], course: Course, settings: Settings) -> _Job:
    """Return the job, or a new one in its place if its process has ended."""
    if not job.process.is_alive():
        pool[pool.index(job)] = job = _start(course, settings, job.core)
    return job


def timed_out(result: SubmissionResult) -> list[str]:
    """Return the ids of the problems in which a test did not come to an end."""
    return [p.id for p in result.problems if any(t.status is Status.TIMEOUT for t in p.tests)]


def alone(
    grade: Callable[[Submission], SubmissionResult],
    submission: Submission,
    shared: SubmissionResult,
) -> SubmissionResult:
    """Grade the problems that had a timeout again, with nothing beside them."""
    again = grade(submission.only(timed_out(shared)))
    if again.status == Status.INTERNAL:
        return again
    repeated = {problem.id: problem for problem in again.problems}
    for problem in repeated.values():
        problem.repeated = True
    shared.problems = [repeated.get(problem.id, problem) for problem in shared.problems]
    return shared


def _serve(connection: Connection, course: Course, settings: Settings, core: int | None) -> None:
    """Grade what comes down the connection until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process in good order
    end_with_parent()  # should it be killed
    with suppress(EOFError, BrokenPipeError):
        try:
            with grader_for(course, settings, core) as grader:
                while True:
                    connection.send(answer(connection.recv(), grader))
        except (InternalError, CourseError) as error:
            connection.send(str(error))


@contextmanager
def grader_for(course: Course, settings: Settings, core: int | None = None) -> Iterator[Grader]:
    """Give what grades this course's submissions, behind a boundary of its own.

    Args:
        course: whose tests to run.
        settings: limits and level of isolation, and the seed.
        core: the only core to grade on; None for any.

    Raises:
        InternalError: the boundary can't be had.
        CourseError: a test file itself can't be run.
    """
    torch.set_num_threads(1)  # there is a job for each core, and small tensors need no second one
    boundary = Boundary(
        settings.level,
        call_seconds=settings.call_seconds,
        memory_mb=settings.memory_mb,
        mark_changes=True,
    )
    with boundary:
        grader = Grader(course, settings, boundary)
        if core is not None:
            boundary.stay_on(core)  # starting was quicker with several
        yield grader


def answer(submission: Submission, grader: Grader) -> SubmissionResult | str:
    """Return the result of a submission, or in a sentence how the grader failed."""
    try:
        return grader.grade(submission)
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


def _finish(job: _Job) -> tuple[Submission, SubmissionResult]:
    """Return the job's submission and its result, or one that says that the grader failed."""
    assert job.submission is not None
    submission, job.submission = job.submission, None
    try:
        found = job.connection.recv()
    except (EOFError, OSError):
        job.process.join(5)
        found = f"the grader's process ended with {job.process.exitcode}"
    return submission, as_result(submission, found)


def as_result(submission: Submission, found: SubmissionResult | str) -> SubmissionResult:
    """Return what `answer` found, as the result of that submission."""
    if isinstance(found, SubmissionResult):
        return found
    failed = internal_result(submission.name, found)
    failed.members, failed.late = submission.members, submission.late
    return failed


def internal_result(name: str, reason: str) -> SubmissionResult:
    """Return the result of a submission that could not be graded through the grader's own fault."""
    test = TestResult("grader", "The grader failed", True, 0.0, Status.INTERNAL, reason)
    return SubmissionResult(name, 0, "", "", [ProblemResult("", tests=[test])], [reason])


def _ask(job: _Job, submission: Submission) -> SubmissionResult:
    _give(job, [submission])
    return _finish(job)[1]


def require_full_marks(reference: SubmissionResult) -> None:
    """Raise GraderError unless the reference solutions passed all tests."""
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
