"""What tests see first: the student's module."""

from __future__ import annotations

from typing import Any

from grader.isolation.connection import Budget
from grader.isolation.proxy.caller import Caller
from grader.isolation.proxy.functions import RemoteFunction
from grader.isolation.proxy.loaded_file import LoadedFile
from grader.isolation.proxy.twin import Target
from grader.isolation.spawn import Workers


class RemoteProblem:
    """The student's module, at a distance. Its attributes are those of the student's module.

    Args:
        workers: where workers come from.
        source: the student's file.
        forbidden: the functions that it may not call, as `grader.forbidden.Guard` names them.
        budget: how long its calls may take.
        printed: what the student's code prints is added here; without it, that is lost.

    Raises:
        CannotLoad: the file can't be used.
    """

    def __init__(
        self,
        workers: Workers,
        source: bytes,
        forbidden: tuple[str, ...],
        budget: Budget,
        printed: list[str] | None = None,
    ) -> None:
        self._file = LoadedFile(workers, source, forbidden, budget, printed)
        self._caller = Caller(self._file)

    @property
    def called(self) -> str | None:
        """The first forbidden function that was called, or None."""
        return self._caller.called

    @property
    def tried(self) -> list[str]:
        """Sentences on what the file tried while it was loaded, for the instructor."""
        return self._file.tried

    def begin_test(self) -> None:
        """Begin a test: what an earlier one got can't be used any more, and may change."""
        self._file.begin()

    def close(self) -> None:
        """End the worker. A later call would start a new one."""
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        target = Target(name)
        if name in self._file.names():
            return RemoteFunction(self._caller, target)
        return self._caller.attribute(target)
