"""The sandbox's interface: start workers, and run tests on submitted files in these workers."""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from grader.code.time_limit import TIMEOUT_SECONDS
from grader.result import Isolation
from grader.sandbox.recorder import Recorder, SubmissionBudget
from grader.sandbox.selftest import attack
from grader.sandbox.spawn import ForkedWorkers, Preloaded, SpawnedWorkers, Workers
from grader.sandbox.starting import SandboxError

T = TypeVar("T")


class Sandbox:
    """A context manager that runs student code in separate processes.

    Entering the context starts the processes. Use the sandbox from only one thread, in the process
    that entered the context.

    Args:
        level: the isolation of student code. `SANDBOX` requires Linux.
        call_seconds: the time limit of one call of student code in seconds.
        submission_seconds: the time limit in seconds of all calls of one submission together; see
            `budget`.
        memory_mb: the memory of a worker in addition to torch's memory, in MB. Only the level
            `SANDBOX` limits memory.
        capture: whether to keep text that student code prints, instead of discarding it.
        prefork_server: the connection to a prefork server that a `TemplateProcess` has started and
            that waits for its settings. If it is None, a fresh interpreter is started, which takes
            seconds.

    Attributes:
        level: the isolation of student code.
    """

    def __init__(
        self,
        level: Isolation = Isolation.SANDBOX,
        *,
        call_seconds: float = TIMEOUT_SECONDS,
        submission_seconds: float = 120.0,
        memory_mb: int = 1024,
        capture: bool = False,
        prefork_server: socket.socket | None = None,
    ) -> None:
        self.level = level
        self._call_seconds = call_seconds
        self._submission_seconds = submission_seconds
        self._memory = memory_mb << 20
        self._capture = capture
        self._prefork_server = prefork_server
        self._workers: Workers | None = None

    def __enter__(self) -> Self:
        """Start the processes.

        Raises:
            SandboxError: this machine does not support the level. The text contains the reason.
        """
        if self.level == Isolation.PROCESS:
            self._workers = SpawnedWorkers()
            return self
        try:
            self._workers = self._confined()
        except SandboxError as reason:
            raise SandboxError(
                f"this machine can't keep student code in a sandbox: {reason}.\n"
                "Use a Linux machine or container, or choose the level 'process', which runs "
                "student code with all rights of your user."
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End all started processes."""
        if self._workers is not None:
            self._workers.close()

    def pin_to_core(self, core: int) -> None:
        """Pin this process and its workers to one processor core. Linux only.

        These processes run in turns, and switching between processes on one core is faster than
        waking another core.
        """
        if self._workers is not None and hasattr(os, "sched_setaffinity"):
            for process in (0, *self._workers.processes):
                with suppress(OSError):  # if the system refuses this, grading is only slower
                    os.sched_setaffinity(process, {core})

    def budget(self, seconds: float | None = None) -> SubmissionBudget:
        """Return a new time budget for a submission. All files of the submission share it.

        Args:
            seconds: the time limit of all calls together. If it is None or more than
                `submission_seconds`, use `submission_seconds`.
        """
        usual = self._submission_seconds
        return SubmissionBudget(
            self._call_seconds, usual if seconds is None else min(seconds, usual)
        )

    def record(
        self,
        preloaded: Preloaded | None,
        order: bytes,
        source: bytes,
        forbidden: tuple[str, ...],
        budget: SubmissionBudget,
    ) -> Recorder:
        """Start a worker that runs tests on a file, and return the connection to the worker.

        Args:
            preloaded: the tests, which the worker has loaded already. Without tests, the worker
                only calls functions of the file.
            order: an encoded list of the tests to run, or of the functions to call.
            source: the file.
            forbidden: the functions that the file may not call.
            budget: the limits of the submission.

        Raises:
            SandboxError: no worker could be started.
        """

        def start(workers: Workers) -> Recorder:
            process = workers.spawn(preloaded, forbidden, source)
            settings = {"forbidden": forbidden, "capture": self._capture}
            return Recorder(process, budget, settings, source, order)

        return self._with_workers(start)

    def _with_workers(self, do: Callable[[Workers], T]) -> T:
        """Call `do`. If it raises SandboxError, restart the prefork server and call `do` again."""
        if self._workers is None:
            raise SandboxError("the sandbox was not entered")
        try:
            return do(self._workers)
        except SandboxError:
            return do(self._restarted(self._workers))

    def _restarted(self, workers: Workers) -> Workers:
        """Restart the prefork server and repeat the self-test. `SpawnedWorkers` need no restart."""
        if isinstance(workers, ForkedWorkers):
            workers.close()
            try:
                workers = self._workers = self._confined()
            except SandboxError as reason:
                text = f"the sandbox could not be started again: {reason}"
                raise SandboxError(text) from None
        return workers

    def _confined(self) -> Workers:
        """Return a source of confined workers that has passed the self-test.

        Raises:
            SandboxError: the sandbox can't be started or failed the self-test.
        """
        reason = _missing()
        if reason:
            raise SandboxError(reason)
        # This server can be used once; a restart needs a fresh interpreter.
        server, self._prefork_server = self._prefork_server, None
        workers = ForkedWorkers(
            self._memory,
            math.ceil(self._submission_seconds),
            prefork_server=server,
        )
        try:
            holes = attack(workers)
        except BaseException:
            workers.close()
            raise
        if holes:
            workers.close()
            raise SandboxError(f"the sandbox failed its self-test ({'; '.join(holes)})")
        return workers


def _missing() -> str:
    if sys.platform != "linux":
        return f"the sandbox does not support {sys.platform}"
    from grader.sandbox.confine import missing

    return missing()
