"""Sends what a test does with the student's code to a worker, and reads the answers."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from grader.batch import Batched, Call
from grader.cost import Cost, counters, elsewhere
from grader.errors import CannotLoad, Mismatch
from grader.forbidden import ForbiddenCall
from grader.isolation.connection import BAD_OUTPUT, Budget, Connection, WorkerFailure
from grader.isolation.protocol import FILE, MAX_NUMBER, MODULE, Header, ProtocolError, Unsendable
from grader.isolation.protocol.checks import (
    clean_text,
    identifier,
    index,
    items,
    name_in,
    texts,
)
from grader.isolation.protocol.tensors import NAMES
from grader.isolation.protocol.values import Unpacker
from grader.isolation.proxy.attempts import told_attempts
from grader.isolation.proxy.autograd import Backward, connect
from grader.isolation.proxy.builder import Builder
from grader.isolation.proxy.changes import changed_arguments, mark, name_of
from grader.isolation.proxy.exceptions import raise_as_students, read_exception, readable_lines
from grader.isolation.proxy.handles import Handles
from grader.isolation.proxy.twin import Target, Twin
from grader.isolation.proxy.values import AnswerUnpacker, RequestPacker, foreign, living
from grader.isolation.spawn import Workers
from grader.loading import judge_load
from grader.result import Status

_CALLS_AT_ONCE = 100
"""How many calls there are in a message, which may take as long as a single one."""

_NOTHING_COUNTS = nullcontext()


class Caller:
    """Runs the student's code in a worker: the first one, or a new one when that has ended.

    Args:
        workers: where workers come from.
        source: the student's file.
        forbidden: the functions that it may not call, as `grader.forbidden.Guard` names them.
        budget: how long its calls may take.
        printed: what the student's code prints is added here; without it, that is lost.

    Attributes:
        called: the first forbidden function that was called, or None.
        tried: sentences on what the file tried while it was loaded, by its worker's word.
        costs: what counts during a request, and is told what the worker counted.

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
        self.called: str | None = None
        self.tried: list[str] = []
        self.costs: list[Cost] = []
        self._workers = workers
        self._source = source
        self._forbidden = forbidden
        self._budget = budget
        self._printed = printed
        self._connection: Connection | None = None
        self._names: list[str] = []
        self._file = f"submission-{next(self._counter)}/{FILE}"
        linecache.cache[self._file] = (len(source), None, readable_lines(source), self._file)
        weakref.finalize(self, linecache.cache.pop, self._file, None)
        self._alive()

    def close(self) -> None:
        """End the worker."""
        if self._connection is not None:
            self._connection.close()

    def names(self) -> list[str]:
        """Return the names of the functions and classes in the student's file."""
        self._alive()
        return self._names

    # The worker

    def _alive(self) -> Connection:
        """Return the connection to the worker, to a new one if there is none."""
        if self._connection is None or self._connection.dead:
            self._connection = self._load()
        return self._connection

    def _load(self) -> Connection:
        process = self._workers.spawn(self._forbidden)
        connection = Connection(process, self._budget, self._printed)
        source = torch.frombuffer(bytearray(self._source + b"\n"), dtype=torch.uint8)
        try:
            capture = self._printed is not None
            load = {"do": "load", "forbidden": list(self._forbidden), "capture": capture}
            connection.put(load, [source])
            answer, _ = connection.exchange(load)
        except WorkerFailure as failure:
            text = f"{FILE} can't be imported. {failure}"
            raise CannotLoad(failure.status, text) from None
        with connection.checked():
            error = answer.get("error")
            exception = None if error is None else read_exception(error, self._file)
            self._names = [identifier(name) for name in items(answer["names"])]
            self.tried = told_attempts(answer["tried"])
        if exception is not None:
            connection.close()
            raise self._judge_load(exception)
        return connection

    def _judge_load(self, exception: Exception) -> CannotLoad:
        try:
            raise_as_students(exception, self._file)
        except Exception as raised:
            return judge_load(raised, Path(self._file))

    # Requests

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
            values = self._values(connection, answer, tensors, packer)
            weights_changed = target.twin.take(answer, tensors, target.root) if target.twin else []
        unmarked = [argument for argument in changed if not mark(argument)]
        if unmarked:
            name = name_of(unmarked[0], calls, self._parameters(connection, target))
            raise Mismatch(f"Your code changed its argument{name and ' '}{name}.")
        if weights_changed:
            raise Mismatch(f"Your code changed its own weights ({weights_changed[0]}) in a call.")
        if stale:
            raise Mismatch(
                f"When {target.label} was called, the result of an earlier call changed with it. "
                "Each call should make a new tensor."
            )
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
            return self._values(connection, answer, tensors, packer)[0]

    def _put(
        self, connection: Connection, target: Target, header: Header, packer: RequestPacker
    ) -> list[int]:
        """Put a request's tensors where the worker sees them, and return their places."""
        header["random"] = connection.random(packer.tensors)
        places = connection.put(header, packer.tensors)
        if target.twin is not None:
            target.twin.placed(places, packer)
        return places

    def _parameters(self, connection: Connection, target: Target) -> list[str]:
        """Return the names of a function's parameters, as its worker tells them."""
        _, header = self._header("parameters", target, connection)
        connection.put(header, [])
        answer, _ = connection.exchange(header)
        with connection.checked():
            return [identifier(name) for name in items(answer["value"])]

    def _connection_of(self, target: Target) -> Connection:
        if target.held is not None:
            return living(target.held._connection, target.held)
        if target.twin is not None:
            return living(target.twin.connection, target.root)
        return self._alive()

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
            _draw(answer, packer.generators)
            _count(answer, self.costs)
            if "grad" in answer:  # code that leaves gradients off leaves them off for the test
                torch._C._set_grad_enabled(bool(answer["grad"]))
            called = answer.get("called")
            if called is not None:
                name_in(called, self._forbidden)
            unsendable = answer.get("unsendable")
            if unsendable is not None:
                unsendable = clean_text(texts([unsendable])[0], 200)
            error = answer.get("error")
            exception = None if error is None else read_exception(error, self._file)
        if called is not None:
            self.called = self.called or called
            raise ForbiddenCall(called)
        if unsendable is not None:
            raise WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}: {unsendable}.")
        if exception is None:
            return
        whole = target is not None and target.twin is None and target.held is None
        if whole and target is not None and isinstance(exception, AttributeError):
            raise AttributeError(str(exception), name=target.name, obj=self._listing())
        raise_as_students(exception, self._file)

    def _listing(self) -> ModuleType:
        """Return a module with the student's names, for those who look for a similar one."""
        module = ModuleType(MODULE)
        vars(module).update(dict.fromkeys(self._names, foreign))
        return module

    # Values

    def _values(
        self, connection: Connection, answer: Header, tensors: list[Tensor], packer: RequestPacker
    ) -> list[Any]:
        """Return the values of an answer, connected to this side's autograd."""
        graphs = [items(graph, 4) for graph in items(answer["graphs"])]
        outputs = self._outputs(connection, graphs, tensors, packer)
        handles = Handles(self, connection)

        def special(packed: Header, unpacker: AnswerUnpacker) -> Any:
            if "out" in packed:
                return outputs[index(packed["out"], len(outputs))]
            if "o" in packed:
                return self._module(connection, packed, unpacker)
            if "h" in packed:
                return handles.handle(packed)
            return foreign(identifier(packed["x"]))

        unpacker = AnswerUnpacker(tensors, special)
        values = [unpacker.unpack(value) for value in items(answer["values"], len(packer.calls))]
        packed = [output for _, _, outputs, _ in graphs for output in outputs]
        for output, tensor in zip(packed, outputs, strict=True):
            if type(output) is dict and "r" in output:
                unpacker.numbered[output["r"]] = tensor
        _keep_results(connection, answer, unpacker)
        return values

    def _outputs(
        self,
        connection: Connection,
        graphs: list[list[Any]],
        tensors: list[Tensor],
        packer: RequestPacker,
    ) -> list[Tensor]:
        """Return the tensors that the calls' graphs end in."""
        outputs: list[Tensor] = []
        unpacker, last = AnswerUnpacker(tensors), -1
        for call, number, packed, foreseen in graphs:
            if index(call, len(packer.calls)) <= last:
                raise ProtocolError("a call has several graphs")
            last = call
            found = tuple(unpacker.unpack(output) for output in items(packed))
            asked = packer.calls[call]
            backward = Backward(self, connection, index(number, MAX_NUMBER))
            if items(foreseen) and asked.upstream is not None:
                backward.foresee(asked.upstream, foreseen[0], tensors)
            outputs += connect(backward, found, [*asked.inputs, *packer.weights.values()])
        return outputs

    def _module(
        self, connection: Connection, packed: Header, unpacker: AnswerUnpacker
    ) -> nn.Module:
        twin = Twin(connection, index(packed["o"], MAX_NUMBER))
        module = Builder(self, twin, Unpacker(unpacker.tensors)).build(packed["module"])
        twin.remember(module)
        return module


class RemoteFunction(Batched):
    """A function, class or method of the student's.

    Args:
        caller: calls it.
        target: which one it is.
    """

    def __init__(self, caller: Caller, target: Target) -> None:
        self._caller = caller
        self._target = target
        self.__name__ = target.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it in the worker."""
        return self._caller.call(self._target, [Call(args, kwargs)])[0]

    def answers(self, calls: Sequence[Call], seeds: Sequence[int] | None = None) -> list[Any]:
        """Call it in the worker, with many calls in a message."""
        return self._caller.call(self._target, calls, seeds)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"a function at a distance has no attribute {name!r}")
        owner = self.__dict__["__name__"]
        raise TypeError(f"reading {owner}.{name} isn't supported; read it from what {owner} makes")


def _draw(answer: Header, generators: list[torch.Generator]) -> None:
    """Draw from what the worker drew from, so that the next numbers are other ones."""
    moved = [bool(flag) for flag in items(answer.get("generators", []))]
    if answer.get("moved"):
        torch.rand(1)
    for generator, drawn in zip(generators, moved, strict=bool(moved)):
        if drawn:
            torch.rand(1, generator=generator)


def _count(answer: Header, costs: list[Cost]) -> None:
    """Add what the worker counted, which is its own word."""
    if costs:
        counted = [index(number, MAX_NUMBER) for number in items(answer["cost"], 3)]
        for cost in costs:
            cost.add(*counted)


def _keep_results(connection: Connection, answer: Header, unpacker: AnswerUnpacker) -> None:
    """Let the worker forget a result when no test holds it any more."""
    numbers = [index(number, MAX_NUMBER) for number in items(answer.get("results", []))]
    for place, number in enumerate(numbers):
        if place in unpacker.numbered:
            connection.keep(number, unpacker.numbered[place])
