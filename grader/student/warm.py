"""Processes that have torch loaded already, each for one run of one problem's tests.

One process stands by at any time and waits to be told which problem to test. It serves a single
run: nothing is left of an earlier one, and one that hangs can be ended. Where forking is safe, it
is forked from a server that has loaded torch and done nothing else; elsewhere it is started anew,
and loads torch while the student types.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from grader.course import Problem
from grader.errors import CourseError
from grader.result import ProblemResult, TestResult

if TYPE_CHECKING:  # they load torch, which is for the processes that run tests
    from grader.run.session import Session
    from grader.run.suite import Suite

_PRELOADED = ["grader.run.suite", "torch.fx.experimental.symbolic_shapes"]
"""What the server loads: all that runs tests, and what torch loads when it first differentiates.
Loading starts no threads, so the server can be forked afterwards."""

_SAFE_PATH = "PYTHONSAFEPATH"

SILENCE_SECONDS = 60.0
"""After so long without a word a run is taken to hang. The time limits of a test and of loading are
shorter, but code in C doesn't hear of them."""


@dataclass(frozen=True)
class FoundSoFar:
    """What a run has found so far.

    Attributes:
        run: the number of the run.
        result: the tests that ran.
        printed: what the student's code printed in each test, by the test's id.
        finished: whether there is no more to come.
        trouble: why the run ended before its end; empty when all is well.
    """

    run: int
    result: ProblemResult
    printed: Mapping[str, str] = field(default_factory=dict)
    finished: bool = False
    trouble: str = ""


class Runs:
    """Runs the tests of one problem at a time; a new run ends the one before it.

    Args:
        root: the course's folder.
        tell: called from another thread with what is found, as it is found.
        silence: after how many seconds without a word a run is ended.
    """

    def __init__(
        self, root: Path, tell: Callable[[FoundSoFar], None], silence: float = SILENCE_SECONDS
    ) -> None:
        self._root, self._tell, self._silence = root, tell, silence
        self._context = _context()
        self._standby: tuple[BaseProcess, Connection] | None = None
        self._running: BaseProcess | None = None
        self.number = 0

    def start(self, problem: Problem, first: Sequence[str] = ()) -> None:
        """Test a problem; `number` is the run's from now on.

        Args:
            problem: which.
            first: ids of tests to run before all: what they find is told at once. Then all tests
                run in their order, these once more, so that the verdict is that of any other run.
        """
        _end(self._running)
        alive = self._standby is not None and self._standby[0].is_alive()
        process, connection = self._standby if self._standby and alive else self._new()
        with suppress(OSError):  # it died while it stood by; the listener will notice
            connection.send((problem.id, tuple(first)))
        self._running, self._standby = process, None
        self.number += 1
        arguments = (self.number, problem.id, process, connection)
        Thread(target=self._listen, args=arguments, daemon=True).start()

    def prepare(self) -> None:
        """Let a process stand by for the next run, for when there is time to."""
        self._standby = self._standby or self._new()

    def close(self) -> None:
        """End all processes."""
        _end(self._running)
        if self._standby is not None:
            _end(self._standby[0])

    def _new(self) -> tuple[BaseProcess, Connection]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self._root, theirs), daemon=True)
        with _without_own_folder():
            process.start()
        theirs.close()
        return process, ours

    def _listen(self, run: int, id: str, process: BaseProcess, connection: Connection) -> None:
        """Pass on what one run finds, until it has finished or is no more."""
        result, printed = ProblemResult(id), dict[str, str]()
        tests: dict[str, TestResult] = {}
        while True:
            try:
                if not connection.poll(self._silence):
                    _end(process)
                    trouble = "Your code did not come to an end."
                    break
                message = connection.recv()
            except (EOFError, OSError):
                trouble = "The process that ran your code has ended. Does problem.py end it?"
                break
            if isinstance(message, ProblemResult):
                self._tell(FoundSoFar(run, message, printed, finished=True))
                return
            if isinstance(message, str):
                trouble = message
                break
            test, text = message
            printed[test.id] = text
            tests.pop(test.id, None)  # one that ran before all comes again in its place
            tests[test.id] = test
            result = ProblemResult(id, tests=list(tests.values()))
            self._tell(FoundSoFar(run, result, dict(printed)))
        self._tell(FoundSoFar(run, result, printed, finished=True, trouble=trouble))


def _context() -> SpawnContext | ForkServerContext:
    """Return how to start processes: by forking, but not with Apple's libraries, nor on Windows."""
    if sys.platform in ("darwin", "win32"):
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


@contextmanager
def _without_own_folder() -> Iterator[None]:
    """Let a Python that is started meanwhile not look for modules in the folder where one stands.

    A student may have left a `random.py` there, and nothing would start.
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
    """Wait for a problem's id and what to run first; send each result and then the whole."""
    import signal

    import torch

    from grader.run.local_files import LocalFiles
    from grader.run.session import Session
    from grader.run.suite import Suite

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who watches
    torch.set_num_threads(1)  # as everywhere where students' code is tested
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):  # the screen is not for what student code prints
        os.dup2(nowhere, stream)
    try:
        id, first = connection.recv()
    except (EOFError, OSError):
        return
    problem = Problem(root / "problems" / id)

    files = LocalFiles()

    def session(*, diagnose: bool) -> Session:
        def send(id: str, test: TestResult) -> None:
            connection.send((test, made.printed[id].get(test.id, "")))

        made = Session(files, on_result=send, diagnose=diagnose)
        return made

    try:
        suite = Suite([problem], root)
        known = {test.id for test in suite.tests}
        if ahead := [test for test in first if test in known]:
            _run_ahead(suite, session(diagnose=False), ahead)
            files.forget(problem)
        whole = session(diagnose=True)
        suite.run(whole)
    except CourseError as error:
        connection.send(str(error))
    except KeyboardInterrupt:
        connection.send("problem.py raises KeyboardInterrupt.")
    else:
        connection.send(whole.results.get(problem.id, ProblemResult(problem.id)))


def _run_ahead(suite: Suite, session: Session, ahead: Sequence[str]) -> None:
    """Run tests in this order, until one has a wrong answer."""
    places = {test: place for place, test in enumerate(ahead)}

    def is_wrong() -> bool:
        return any(test.is_wrong for result in session.results.values() for test in result.tests)

    suite.run(session, tests=ahead, order=lambda test: (places[test.id],), enough=is_wrong)
