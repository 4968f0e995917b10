"""Grade submissions in a process of the pool, one after the other.

The process loads torch and the tests. It never runs student code, which runs in the sandbox. The
command that starts the process does not load torch.
"""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from grader.course import Course
from grader.errors import CourseError, InternalError
from grader.grade.settings import Settings
from grader.grade.submission import Grader, sandbox_for
from grader.intake.handed_in import Submission
from grader.result import SubmissionResult

if sys.platform != "win32":
    import resource

_MEMORY = 1 << 30
"""The memory limit in bytes for recording the reference and for judging workers' messages.

The tests of the course need less than a third of this limit."""


def serve(
    connection: Connection,
    prefork_server: socket.socket | None,
    course: Course,
    settings: Settings,
    needed: Collection[str],
    core: int | None,
) -> None:
    """Grade submissions from a connection until it is closed.

    Args:
        connection: receives a submission and its time limit in seconds. The return value of
            `answer` is sent back.
        prefork_server: the connection to this process's prefork server, if there is one.
        course: the course with the tests.
        settings: seed, limits and level of isolation.
        needed: the ids of all problems in the submissions.
        core: the only core to grade on; None for all cores.
    """
    with suppress(EOFError, BrokenPipeError):
        try:
            with grader_for(course, settings, core, prefork_server, needed) as grader:
                limit_memory(_MEMORY)
                while True:
                    submission, seconds = connection.recv()
                    connection.send(answer(submission, grader, seconds))
        except InternalError as error:
            connection.recv()  # if this message stayed unread, the reply could be lost
            connection.send(str(error))
        except CourseError as error:
            while True:  # no restart, because a new process would fail in the same way
                connection.recv()
                connection.send(str(error))


def limit_memory(size: int) -> None:
    """Limit the bytes that this process can allocate from now on. Linux only.

    If judging a worker's message needs more memory, the test fails.
    """
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        limit = pages * resource.getpagesize() + size
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        if most == resource.RLIM_INFINITY or limit < most:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


@contextmanager
def memory_limit(size: int = _MEMORY) -> Iterator[None]:
    """Limit the bytes that this process can allocate in this context. Linux only."""
    if sys.platform != "linux":
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit_memory(size)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


@contextmanager
def grader_for(
    course: Course,
    settings: Settings,
    core: int | None = None,
    prefork_server: socket.socket | None = None,
    needed: Collection[str] | None = None,
) -> Iterator[Grader]:
    """Yield a grader that has its own sandbox.

    Args:
        course: the course with the tests.
        settings: seed, limits and level of isolation.
        core: the only core to grade on; None for all cores.
        prefork_server: the connection to this process's prefork server, if there is one.
        needed: the ids of all problems in the submissions; None for the whole course.

    Raises:
        InternalError: the sandbox can't be started.
        CourseError: a test file can't be run.
    """
    torch.set_num_threads(1)  # leave the other cores to the other jobs
    with sandbox_for(settings, prefork_server) as sandbox:
        grader = Grader(course, settings, sandbox, needed)
        # Existing objects are used until the end, so exclude them from garbage collection.
        gc.freeze()
        # Do this after the tests were loaded, because loading is faster on several cores.
        if core is not None:
            sandbox.pin_to_core(core)
        yield grader


def answer(
    submission: Submission, grader: Grader, seconds: float | None = None
) -> SubmissionResult | str:
    """Return the result of a submission. If the grader fails, return a sentence about the error.

    Args:
        submission: the submission to grade.
        grader: the grader.
        seconds: the time limit for all calls of student code; None for the default limit.
    """
    try:
        return grader.grade(submission, seconds)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
