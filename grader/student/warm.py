"""Start processes in advance that load torch and then run a problem's tests, for `grader watch`.

Each process runs the tests of a problem once. So runs do not affect each other, and a process that
hangs can be killed. On Linux the process is forked from a server that has loaded torch. On macOS
and Windows a new Python starts and loads torch while the student edits the file.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

from grader.course import Problem
from grader.errors import CourseError
from grader.result import ProblemResult, TestResult

_PRELOADED = ["grader.run.suite", "torch.fx.experimental.symbolic_shapes"]
"""The modules that the server loads: those that run tests, and those that torch's autograd would
load later. Loading them starts no threads, so that the server can be forked."""

_SAFE_PATH = "PYTHONSAFEPATH"

SILENCE_SECONDS = 60.0
"""A run that sends no message for this many seconds is killed. The limits for a test and for
loading a file are shorter, but they cannot interrupt C code."""


@dataclass(frozen=True)
class RunProgress:
    """The results of a run, which may not have finished yet.

    Attributes:
        run: the number of the run.
        result: the results of the finished tests.
        printed: for each test id, the output of the student's code in the test.
        finished: whether the run has finished.
        trouble: the reason why the run ended early, or "".
    """

    run: int
    result: ProblemResult
    printed: Mapping[str, str] = field(default_factory=dict)
    finished: bool = False
    trouble: str = ""


class Runs:
    """Runs the tests of one problem at a time. A new run ends the previous run.

    Args:
        root: the course's folder.
        on_progress: called from another thread after each test, and when a run ends.
        silence: a run that sends no message for this many seconds is killed.
    """

    def __init__(
        self,
        root: Path,
        on_progress: Callable[[RunProgress], None],
        silence: float = SILENCE_SECONDS,
    ) -> None:
        self._root, self._on_progress, self._silence = root, on_progress, silence
        self._context = _context()
        self._standby: tuple[BaseProcess, Connection] | None = None
        self._running: BaseProcess | None = None
        self.number = 0

    def start(self, problem: Problem) -> None:
        """Start a run of a problem's tests, and store the number of the run in `number`."""
        _end(self._running)
        alive = self._standby is not None and self._standby[0].is_alive()
        process, connection = self._standby if self._standby and alive else self._new()
        with suppress(OSError):  # the waiting process has ended; _listen will report it
            connection.send(problem.id)
        self._running, self._standby = process, None
        self.number += 1
        arguments = (self.number, problem.id, process, connection)
        Thread(target=self._listen, args=arguments, daemon=True).start()

    def prepare(self) -> None:
        """Start a process that waits for the next run, unless one is waiting already."""
        self._standby = self._standby or self._new()

    def close(self) -> None:
        """End all processes."""
        _end(self._running)
        if self._standby is not None:
            _end(self._standby[0])

    def _new(self) -> tuple[BaseProcess, Connection]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self._root, theirs), daemon=True)
        with _without_current_folder():
            process.start()
        theirs.close()
        return process, ours

    def _listen(self, run: int, id: str, process: BaseProcess, connection: Connection) -> None:
        """Report the results of one run until it has finished or its process has ended."""
        result, printed = ProblemResult(id), dict[str, str]()
        while True:
            try:
                if not connection.poll(self._silence):
                    _end(process)
                    trouble = "Your code did not finish in time."
                    break
                message = connection.recv()
            except (EOFError, OSError):
                trouble = "The process with your code has ended. Does problem.py end it?"
                break
            if isinstance(message, ProblemResult):
                self._on_progress(RunProgress(run, message, printed, finished=True))
                return
            if isinstance(message, str):
                trouble = message
                break
            test, text = message
            printed[test.id] = text
            result = ProblemResult(id, tests=[*result.tests, test])
            self._on_progress(RunProgress(run, result, dict(printed)))
        self._on_progress(RunProgress(run, result, printed, finished=True, trouble=trouble))


def _context() -> SpawnContext | ForkServerContext:
    """Return the context for starting processes: a fork server, except on macOS and Windows."""
    if sys.platform in ("darwin", "win32"):
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


@contextmanager
def _without_current_folder() -> Iterator[None]:
    """Prevent new Python processes from importing modules from the current folder.

    Otherwise a student's `random.py` in this folder would replace the standard library's module.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]
        if before is not None:
            os.environ[_SAFE_PATH] = before


def _end(process: BaseProcess | None) -> None:
    if process is not None:
        process.kill()
        process.join()


def _serve(root: Path, connection: Connection) -> None:
    """Receive a problem's id, run its tests, and send a result after each test and at the end.

    If the run fails, the last message is a string with the reason.
    """
    import signal

    import torch

    from grader.run.local_files import LocalFiles
    from grader.run.session import Session
    from grader.run.suite import Suite

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C
    torch.set_num_threads(1)  # as in all test runs
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):  # keep output of student code off the screen
        os.dup2(nowhere, stream)
    try:
        id = connection.recv()
    except (EOFError, OSError):
        return
    problem = Problem(root / "problems" / id)

    def send(id: str, test: TestResult) -> None:
        connection.send((test, session.printed[id].get(test.id, "")))

    session = Session(LocalFiles(), on_result=send, diagnose=True)
    try:
        Suite([problem], root).run(session)
    except CourseError as error:
        connection.send(str(error))
    except KeyboardInterrupt:
        connection.send("problem.py raises KeyboardInterrupt.")
    else:
        connection.send(session.results.get(problem.id, ProblemResult(problem.id)))
