"""The sandbox's interface: start it, and run orders on submitted files in its workers."""

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

    Entering it starts the processes. Use it from one thread of the process that enters it.

    Args:
        level: the isolation of student code. `SANDBOX` requires Linux.
        call_seconds: how long one call of student code may take.
        submission_seconds: how long all calls of one submission may take together; see `budget`.
        memory_mb: the memory of a worker in addition to torch's; in a sandbox only.
        capture: whether to keep the output of student code, which is dropped otherwise.
        prefork_server: the connection to one that waits for its settings, from `TemplateProcess`.
            Without it, a fresh interpreter is started, which takes seconds.

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
        """Start it.

        Raises:
            SandboxError: this machine does not support the level; the text says why.
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
                "student code with all rights of your own user."
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

    def stay_on(self, core: int) -> None:
        """Pin this process and its workers to one core. Linux only.

        They take turns. Switching on one core is quick; waking another core takes longer.
        """
        if self._workers is not None and hasattr(os, "sched_setaffinity"):
            for process in (0, *self._workers.processes):
                with suppress(OSError):  # where it isn't allowed, grading takes longer
                    os.sched_setaffinity(process, {core})

    def budget(self, seconds: float | None = None) -> SubmissionBudget:
        """Return the budget of a submission, which all of its files share.

        Args:
            seconds: how long all of its calls may take, if that is less than the default.
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
        """Start a worker that runs tests on a file, and return the connection to it.

        Args:
            preloaded: the tests, which the worker has loaded already. Without it, the worker
                calls functions of the file.
            order: the tests to run, or the functions to call.
            source: the file.
            forbidden: the functions that it may not call.
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
        """Call `do`, and once more after a restart if the prefork server may have died."""
        if self._workers is None:
            raise SandboxError("the sandbox was not entered")
        try:
            return do(self._workers)
        except SandboxError:
            return do(self._restarted(self._workers))

    def _restarted(self, workers: Workers) -> Workers:
        """Restart the prefork server and its self-test; `SpawnedWorkers` need no restart."""
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
            SandboxError: it can't be started or failed the test; the text says why.
        """
        reason = _missing()
        if reason:
            raise SandboxError(reason)
        # A restart needs a fresh interpreter, as this server is used up.
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
            raise SandboxError(f"its self-test found a hole ({'; '.join(holes)})")
        return workers


def _missing() -> str:
    if sys.platform != "linux":
        return f"there is none for {sys.platform}"
    from grader.sandbox.confine import missing

    return missing()
