"""The public face of the boundary: starts it, says how strong it is, opens submissions."""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from types import TracebackType
from typing import Self

from grader.isolation.connection import Budget
from grader.isolation.proxy import RemoteProblem
from grader.isolation.sandbox.selftest import attack
from grader.isolation.spawn import BoundaryError, SpawnedWorkers, WarmWorkers, Workers

LEVELS = ("auto", "sandbox", "process")

_SANDBOX = (
    "Student code ran in a sandbox: a process of its own{user}, without network, without access "
    "to files other than Python's and torch's, and with limits on time and memory."
)
_PROCESS = (
    "Student code ran in a process of its own but NOT in a sandbox: it could read and change "
    "whatever the user who graded can"
)


class Boundary:
    """Where student code runs, apart from the process that uses this. A context manager.

    Entering it starts what it needs. It serves one thread of the process that enters it.

    Args:
        level: "sandbox" (confined processes; Linux), "process" (other processes, not confined), or
            "auto" for the stronger one that this machine proves to have.
        call_seconds: how long one call of student code may take.
        submission_seconds: how long all calls of one submission may take together; see `budget`.
        memory_mb: how much memory a worker may use beyond what torch takes; in a confine.
        mark_changes: what happens when a call changes its argument. By default the call itself
            raises Mismatch. If true, the test's tensor is marked by a change in the last place of
            one entry, so that only a test that compares it exactly fails, as it does in process.
        capture: whether to keep what student code prints, which is lost otherwise.

    Attributes:
        printed: what student code printed, call by call, if that is kept.
        level: "sandbox" or "process", once entered.
        description: one sentence on what that means, for reports.
    """

    def __init__(
        self,
        level: str = "auto",
        *,
        call_seconds: float = 10.0,
        submission_seconds: float = 120.0,
        memory_mb: int = 1024,
        mark_changes: bool = False,
        capture: bool = False,
    ) -> None:
        if level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
        self.level = level
        self.description = ""
        self._call_seconds = call_seconds
        self._submission_seconds = submission_seconds
        self._memory = memory_mb << 20
        self._mark_changes = mark_changes
        self._capture = capture
        self.printed: list[str] = []
        self._workers: Workers | None = None

    def __enter__(self) -> Self:
        """Start it.

        Raises:
            BoundaryError: the level asked for isn't to be had here; the text says why.
        """
        if self.level == "process":
            self._workers = SpawnedWorkers()
            self.description = f"{_PROCESS}."
        else:
            self._enter_sandbox()
        self.level = "sandbox" if isinstance(self._workers, WarmWorkers) else "process"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End everything that was started."""
        if self._workers is not None:
            self._workers.close()

    def stay_on(self, core: int) -> None:
        """Keep this process and its workers on one core from now on; on Linux only.

        Each waits while the other works, thousands of times for each submission. On one core that
        is a quick change, while to wake another core can take longer than a call.
        """
        if self._workers is not None and hasattr(os, "sched_setaffinity"):
            for process in (0, *self._workers.processes):
                with suppress(OSError):  # where it isn't allowed, grading takes longer
                    os.sched_setaffinity(process, {core})

    def budget(self) -> Budget:
        """Return the time that a submission may take; to open all of its files with."""
        return Budget(self._call_seconds, self._submission_seconds)

    def open(
        self, source: bytes, forbidden: tuple[str, ...] = (), budget: Budget | None = None
    ) -> RemoteProblem:
        """Load a student's file in a new worker.

        Args:
            source: what is in the file.
            forbidden: the functions that it may not call, as `grader.forbidden.Guard` names them.
            budget: the submission's time; when None, this file is a submission by itself.

        Returns:
            What acts like the module. Close it when it isn't needed any more.

        Raises:
            CannotLoad: the file can't be used; with a status and what the student reads.
            BoundaryError: no worker could be started.
        """
        if self._workers is None:
            raise BoundaryError("the boundary was not entered")
        budget = budget or self.budget()
        try:
            return self._open(self._workers, source, tuple(forbidden), budget)
        except BoundaryError:
            # The warm parent may have died. A new one serves this file and the next ones.
            self._restart()
            return self._open(self._workers, source, tuple(forbidden), budget)

    def _open(
        self, workers: Workers, source: bytes, forbidden: tuple[str, ...], budget: Budget
    ) -> RemoteProblem:
        return RemoteProblem(
            workers,
            source,
            forbidden,
            budget,
            mark_changes=self._mark_changes,
            printed=self.printed if self._capture else None,
        )

    def _restart(self) -> None:
        """Start the sandbox again, with its self-test; without one there is nothing to start."""
        if isinstance(self._workers, WarmWorkers):
            self._workers.close()
            reason = self._start_sandbox()
            if reason:
                raise BoundaryError(f"the sandbox could not be started again: {reason}")

    def _enter_sandbox(self) -> None:
        reason = self._start_sandbox()
        if not reason:
            return
        if self.level == "sandbox":
            raise BoundaryError(
                f"this machine can't keep student code in a sandbox: {reason}.\n"
                "Use a Linux machine or container, or choose the level 'process', which runs "
                "student code with all rights of your own user."
            )
        self._workers = SpawnedWorkers()
        self.description = f"{_PROCESS} (no sandbox: {reason})."

    def _start_sandbox(self) -> str:
        """Start confined workers and attack them; return why that can't be, or nothing."""
        reason = _missing()
        if reason:
            return reason
        workers = WarmWorkers(self._memory, math.ceil(self._submission_seconds))
        broken = attack(workers)
        if broken:
            workers.close()
            return f"its self-test found a hole ({'; '.join(broken)})"
        self._workers = workers
        user = ", as a user of its own" if workers.own_uid else ""
        self.description = _SANDBOX.format(user=user)
        return ""


def _missing() -> str:
    if sys.platform != "linux":
        return f"there is none for {sys.platform}"
    from grader.isolation.sandbox import confine

    return confine.missing()
