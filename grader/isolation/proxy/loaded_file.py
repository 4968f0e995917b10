"""The student's file in a worker: the first one, or a new one when that has ended."""

from __future__ import annotations

import itertools
import linecache
import weakref
from pathlib import Path
from types import ModuleType

import torch

from grader.errors import CannotLoad
from grader.isolation.connection import Budget, Connection, WorkerFailure
from grader.isolation.protocol import FILE, MODULE
from grader.isolation.protocol.checks import identifier, items
from grader.isolation.proxy.attempts import told_attempts
from grader.isolation.proxy.exceptions import raise_as_students, read_exception, readable_lines
from grader.isolation.proxy.values import foreign
from grader.isolation.spawn import Workers
from grader.loading import judge_load


class LoadedFile:
    """A student's file, and the connection to the worker that has loaded it.

    Args:
        workers: where workers come from.
        source: the student's file.
        forbidden: the functions that it may not call, as `grader.forbidden.Guard` names them.
        budget: how long its calls may take.
        printed: what the student's code prints is added here; without it, that is lost.

    Attributes:
        forbidden: the same.
        path: by what name its lines are found, in a traceback for example.
        tried: sentences on what the file tried while it was loaded, by its worker's word.

    Raises:
        CannotLoad: the file can't be used.
    """

    _counter = itertools.count(1)

    def __init__(
        self,
        workers: Workers,
        source: bytes,
        forbidden: tuple[str, ...],
        budget: Budget,
        printed: list[str] | None,
    ) -> None:
        self.forbidden = forbidden
        self.tried: list[str] = []
        self.path = f"submission-{next(self._counter)}/{FILE}"
        self._workers = workers
        self._source = source
        self._budget = budget
        self._printed = printed
        self._connection: Connection | None = None
        self._names: list[str] = []
        linecache.cache[self.path] = (len(source), None, readable_lines(source), self.path)
        weakref.finalize(self, linecache.cache.pop, self.path, None)
        self.connection()

    def close(self) -> None:
        """End the worker."""
        if self._connection is not None:
            self._connection.close()

    def begin(self) -> None:
        """Begin a test."""
        if self._connection is not None:
            self._connection.begin()

    def names(self) -> list[str]:
        """Return the names of the functions and classes in the student's file."""
        self.connection()
        return self._names

    def listing(self) -> ModuleType:
        """Return a module with the student's names, for those who look for a similar one."""
        module = ModuleType(MODULE)
        vars(module).update(dict.fromkeys(self._names, foreign))
        return module

    def connection(self) -> Connection:
        """Return the connection to the worker, to a new one if there is none."""
        if self._connection is None or self._connection.dead:
            self._connection = self._load()
        return self._connection

    def _load(self) -> Connection:
        process = self._workers.spawn(self.forbidden)
        connection = Connection(process, self._budget, self._printed)
        source = torch.frombuffer(bytearray(self._source + b"\n"), dtype=torch.uint8)
        try:
            capture = self._printed is not None
            load = {"do": "load", "forbidden": list(self.forbidden), "capture": capture}
            connection.put([source])
            answer, _ = connection.exchange(load)
        except WorkerFailure as failure:
            text = f"{FILE} can't be imported. {failure}"
            raise CannotLoad(failure.status, text) from None
        with connection.checked():
            error = answer.get("error")
            exception = None if error is None else read_exception(error, self.path)
            self._names = [identifier(name) for name in items(answer["names"])]
            self.tried = told_attempts(answer["tried"])
        if exception is not None:
            connection.close()
            raise self._judge_load(exception)
        return connection

    def _judge_load(self, exception: Exception) -> CannotLoad:
        try:
            raise_as_students(exception, self.path)
        except Exception as raised:
            return judge_load(raised, Path(self.path))
