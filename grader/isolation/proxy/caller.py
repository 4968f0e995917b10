"""Sends what a test does with the student's code to a worker, and takes the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from grader.batch import Call, overwritten
from grader.cost import Cost, counters, elsewhere
from grader.errors import Mismatch
from grader.forbidden import ForbiddenCall
from grader.isolation.connection import BAD_OUTPUT, Connection, WorkerFailure
from grader.isolation.protocol import Header, Unsendable
from grader.isolation.protocol.checks import identifier, items
from grader.isolation.protocol.tensors import NAMES
from grader.isolation.proxy.answers import AnswerReader
from grader.isolation.proxy.changes import changed_arguments, mark, mark_lists, name_of
from grader.isolation.proxy.exceptions import raise_as_students
from grader.isolation.proxy.functions import RemoteFunction
from grader.isolation.proxy.loaded_file import LoadedFile
from grader.isolation.proxy.outcomes import count, draw, read_outcome
from grader.isolation.proxy.twin import Target
from grader.isolation.proxy.values import RequestPacker, living
from grader.result import Status

_CALLS_AT_ONCE = 100
"""How many calls there are in a message, which may take as long as a single one."""

_NOTHING_COUNTS = nullcontext()


class Caller:
    """Makes the calls of the tests in the worker that has the student's file.

    Args:
        file: the student's.

    Attributes:
        called: the first forbidden function that was called, or None.
        costs: what counts during a request, and is told what the worker counted.
    """

    def __init__(self, file: LoadedFile) -> None:
        self.called: str | None = None
        self.costs: list[Cost] = []
        self._file = file

    def apart(self) -> AbstractContextManager[None]:
        """Let nothing count that this side does for a request; the worker counts."""
        return self._uncounted() if counters() else _NOTHING_COUNTS

    @contextmanager
    def _uncounted(self) -> Iterator[None]:
        with elsewhere() as self.costs:
            try:
                yield
            finally:
                self.costs = []

    def call(
        self, target: Target, calls: Sequence[Call], seeds: Sequence[int] | None = None
    ) -> list[Any]:
        """Call a function, a method or a module in the worker.

        Args:
            target: what is called.
            calls: its calls.
            seeds: what the global generator is seeded with before each.

        Raises:
            TypeError: an argument can't be sent.
            Mismatch: the call changed what it may not change.
            WorkerFailure: there is no answer, or none that can be read.
            ForbiddenCall: a forbidden function was called.
            Exception: what the student's code raised.
        """
        found: list[Any] = []
        with self.apart():
            for start in range(0, len(calls), _CALLS_AT_ONCE):
                end = start + _CALLS_AT_ONCE
                some = None if seeds is None else seeds[start:end]
                found += self._call(target, calls[start:end], some)
        return found

    def _call(
        self, target: Target, calls: Sequence[Call], seeds: Sequence[int] | None
    ) -> list[Any]:
        connection = self._connection_of(target)
        packer, header = self._header("call", target, connection)
        header["weights"] = [*packer.weights]
        header["seeds"] = seeds
        try:
            header["calls"] = [packer.call(call, not self.costs) for call in calls]
        except Unsendable as reason:
            raise TypeError(f"can't be handed to a student's code in grading: {reason}") from None
        places = self._put(connection, target, header, packer)
        answer, tensors = connection.exchange(header)
        if seeds:
            torch.default_generator.manual_seed(seeds[-1])
        self.settle(connection, answer, packer)
        with connection.checked():
            stale = bool(answer["stale"])
            changed = changed_arguments(connection, answer, packer, places)
            mark_lists(answer, packer)
            values = AnswerReader(self, connection, tensors, packer).values(answer)
            weights_changed = target.twin.take(answer, tensors, target.root) if target.twin else []
        unmarked = [argument for argument in changed if not mark(argument)]
        if unmarked:
            name = name_of(unmarked[0], calls, self._parameters(connection, target))
            raise Mismatch(f"Your code changed its argument{name and ' '}{name}.")
        if weights_changed:
            raise Mismatch(f"Your code changed its own weights ({weights_changed[0]}) in a call.")
        if stale:
            raise overwritten(target.label)
        return values

    def attribute(self, target: Target) -> Any:
        """Return an attribute of the student's module, or of a module in it.

        Raises:
            AttributeError: there is none.
            Exception: as `call` does.
        """
        with self.apart():
            return self._attribute(target)

    def _attribute(self, target: Target) -> Any:
        connection = self._connection_of(target)
        packer, header = self._header("attribute", target, connection)
        packer.call(Call(), is_foreseen=False)
        self._put(connection, target, header, packer)
        answer, tensors = connection.exchange(header)
        self.settle(connection, answer, packer, target)
        with connection.checked():
            (found,) = items(answer["values"], 1)
            if type(found) is dict and found.get("method") is True:
                return RemoteFunction(self, target)
            return AnswerReader(self, connection, tensors, packer).values(answer)[0]

    def _put(
        self, connection: Connection, target: Target, header: Header, packer: RequestPacker
    ) -> list[int]:
        """Put a request's tensors where the worker sees them, and return their places."""
        header["random"] = connection.random(packer.tensors)
        places = connection.put(packer.tensors)
        if target.twin is not None:
            target.twin.placed(places, packer)
        return places

    def _parameters(self, connection: Connection, target: Target) -> list[str]:
        """Return the names of a function's parameters, as its worker tells them."""
        _, header = self._header("parameters", target, connection)
        connection.put([])
        answer, _ = connection.exchange(header)
        with connection.checked():
            return [identifier(name) for name in items(answer["value"])]

    def _connection_of(self, target: Target) -> Connection:
        if target.held is not None:
            return living(target.held._connection, target.held)
        if target.twin is not None:
            return living(target.twin.connection, target.root)
        return self._file.connection()

    def _header(
        self, do: str, target: Target, connection: Connection
    ) -> tuple[RequestPacker, Header]:
        """Return the part of a request that says about what, and in which state."""
        packer = RequestPacker(connection)
        header: Header = {
            "do": do,
            "name": target.name,
            "path": target.path,
            "object": None,
            "held": None if target.held is None else target.held._number,
            "dtype": NAMES[torch.get_default_dtype()],
            "grad": torch.is_grad_enabled(),
            "count": bool(self.costs),
        }
        if target.twin is not None:
            header["object"] = target.twin.number
            header["state"] = target.twin.state(target.root, packer)
        return packer, header

    def settle(
        self,
        connection: Connection,
        answer: Header,
        packer: RequestPacker,
        target: Target | None = None,
    ) -> None:
        """Draw what the worker drew, and raise what it raised."""
        with connection.checked():
            draw(answer, packer.generators)
            count(answer, self.costs)
            if "grad" in answer:  # code that leaves gradients off leaves them off for the test
                torch._C._set_grad_enabled(bool(answer["grad"]))
            outcome = read_outcome(answer, self._file.forbidden, self._file.path)
        if outcome.called is not None:
            self.called = self.called or outcome.called
            raise ForbiddenCall(outcome.called)
        if outcome.unsendable is not None:
            raise WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}: {outcome.unsendable}.")
        exception = outcome.exception
        if exception is None:
            return
        whole = target is not None and target.twin is None and target.held is None
        if whole and target is not None and isinstance(exception, AttributeError):
            listing = self._file.listing()
            raise AttributeError(str(exception), name=target.name, obj=listing)
        raise_as_students(exception, self._file.path)
