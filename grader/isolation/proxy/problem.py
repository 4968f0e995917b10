"""What tests see first: the student's module."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from grader.isolation.connection import Budget
from grader.isolation.precedents import Precedents, Ways
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
        precedents: what tests asked that passed; None to make no use of that.

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
        precedents: Precedents | None = None,
    ) -> None:
        self._precedents = precedents
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

    def begin_test(self, test: Hashable) -> bool:
        """Begin a test; return whether the code answers all of it as code did that passed it.

        What was made in an earlier test can't be used any more.

        Args:
            test: what all that the test asks hangs on, beside the code.

        Raises:
            CannotLoad: the file can't be loaded again, after its worker ended.
        """
        return self._file.begin(Ways() if self._precedents is None else self._precedents.of(test))

    @property
    def is_astray(self) -> bool:
        """Whether the test could not go on, since it did not ask what was asked ahead of it."""
        return self._file.is_astray

    def passed_test(self, test: Hashable) -> None:
        """Take note that the test passed that began last, and ran."""
        record = self._file.record()
        if self._precedents is not None and record is not None:
            self._precedents.keep(test, record)

    def close(self) -> None:
        """End the worker. A later call would start a new one."""
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        target = Target(name)
        if self._file.has(name):
            return RemoteFunction(self._caller, target)
        return self._caller.attribute(target)
