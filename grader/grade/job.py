"""What a process of the pool does: it grades one submission after the other.

It holds the tests and never runs a student's code; that happens in the sandbox. It alone loads
torch: the command that started it does without.
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

_MEMORY = 4 << 30


def serve(
    connection: Connection,
    prefork_server: socket.socket | None,
    course: Course,
    settings: Settings,
    needed: Collection[str],
    core: int | None,
) -> None:
    """Grade what comes down the connection until it is closed.

    Args:
        connection: brings submissions, each with its seconds, and takes what `answer` says of each.
        prefork_server: the connection to one that was started with this process, if any was.
        course: whose tests to run.
        settings: seed, limits and level of isolation.
        needed: ids of the problems that submissions will come for.
        core: the only core to grade on; None for any.
    """
    with suppress(EOFError, BrokenPipeError):
        try:
            with grader_for(course, settings, core, prefork_server, needed) as grader:
                limit_memory(_MEMORY)
                while True:
                    submission, seconds = connection.recv()
                    connection.send(answer(submission, grader, seconds))
        except InternalError as error:
            connection.recv()  # or it would end with that unread, and the answer would be lost
            connection.send(str(error))
        except CourseError as error:
            while True:  # another process would find the same
                connection.recv()
                connection.send(str(error))


def limit_memory(size: int) -> None:
    """Let this process take no more than so many bytes beyond what it has; on Linux only.

    Answers have their own limits. Should a test make too much of one, that ends the test.
    """
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        limit = pages * resource.getpagesize() + size
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        if most == resource.RLIM_INFINITY or limit < most:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


@contextmanager
def memory_limit(size: int = _MEMORY) -> Iterator[None]:
    """Let this process take no more than so many bytes more while this context lasts."""
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
    """Give what grades this course's submissions, behind a sandbox of its own.

    Args:
        course: whose tests to run.
        settings: limits and level of isolation, and the seed.
        core: the only core to grade on; None for any.
        prefork_server: the connection to one that was started with this process, if any was.
        needed: ids of the problems that submissions will come for; None for all.

    Raises:
        InternalError: the sandbox can't be had.
        CourseError: a test file itself can't be run.
    """
    torch.set_num_threads(1)  # there is a job for each core, and small tensors need no second one
    with sandbox_for(settings, prefork_server) as sandbox:
        grader = Grader(course, settings, sandbox, needed)
        # What is here now stays: the collector of garbage need not look at it again and again.
        gc.freeze()
        if core is not None:
            sandbox.stay_on(core)  # starting was quicker with several
        yield grader


def answer(
    submission: Submission, grader: Grader, seconds: float | None = None
) -> SubmissionResult | str:
    """Return the result of a submission, or in a sentence how the grader failed.

    Args:
        submission: what to grade.
        grader: grades it.
        seconds: how long all calls of its code may take, if that is less than usual.
    """
    try:
        return grader.grade(submission, seconds)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
