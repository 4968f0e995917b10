"""What tests hold of a student's file, and how a call of it goes: pack, send, receive, unpack.

`RemoteProblem` acts like the student's module, whose code runs in a worker. A call is one request:
`Caller.call` writes the arguments, sends them, and reads from the response what came back, whether
arguments or weights were changed, and what was raised.
"""

from __future__ import annotations

import itertools
import linecache
import math
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy
import torch
from torch import Tensor

from grader.boundary.attempts import sentences_on
from grader.boundary.connection import Connection
from grader.boundary.failures import WorkerFailure, while_imported
from grader.boundary.frames import ProtocolError
from grader.boundary.protocol.codec import NAMES, RequestPacker, ResponseReader
from grader.boundary.protocol.wire import (
    FILE,
    MAX_REFERENCES,
    MODULE,
    AnyValue,
    AttributeRequest,
    CallRequest,
    FormValue,
    GraphForm,
    Load,
    ModuleValue,
    OtherValue,
    OutputValue,
    ReferenceValue,
    RequestTarget,
    Response,
    Setting,
    StudentsValue,
    TensorValue,
    Unsendable,
    identifier,
    numbered,
)
from grader.boundary.proxy.autograd import Backward, connect
from grader.boundary.proxy.endings import (
    ending_of,
    raise_as_students,
    read_exception,
    readable_lines,
)
from grader.boundary.proxy.modules import Twin, build_module
from grader.boundary.proxy.stand_ins import (
    Formal,
    PutIn,
    RemoteReference,
    StudentsContainer,
    Subject,
    container_of_class,
    living,
    reference,
    remote_value,
    spoil,
)
from grader.boundary.recorder import SubmissionBudget
from grader.boundary.spawn import Workers
from grader.code.batch import Batched, Call, overwritten
from grader.code.cost import Cost, counters, elsewhere
from grader.code.forbidden import ForbiddenCall
from grader.code.loading import judge_load
from grader.code.tensors import Array, entries, is_float
from grader.errors import CannotLoad, Mismatch

_CALLS_AT_ONCE = 100
"""How many calls there are in a message, which may take as long as a single one."""


class RemoteProblem:
    """The student's module, at a distance. Its attributes are those of the student's module.

    Args:
        file: theirs.
    """

    def __init__(self, file: LoadedFile) -> None:
        self._file = file
        self._caller = Caller(file)

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
        subject = Subject(name)
        if name in self._file.names():
            return RemoteFunction(self._caller, subject)
        return self._caller.attribute(subject)


class RemoteFunction(Batched):
    """A function, class or method of the student's.

    Args:
        caller: calls it.
        subject: which one it is.
    """

    def __init__(self, caller: Caller, subject: Subject) -> None:
        self._caller = caller
        self._subject = subject
        self.__name__ = subject.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it in the worker."""
        return self._caller.call(self._subject, [Call(args, kwargs)])[0]

    def answers(self, calls: Sequence[Call], seeds: Sequence[int] | None = None) -> list[Any]:
        """Call it in the worker, with many calls in a message."""
        return self._caller.call(self._subject, calls, seeds)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"a function at a distance has no attribute {name!r}")
        owner = self.__dict__["__name__"]
        raise TypeError(f"reading {owner}.{name} isn't supported; read it from what {owner} makes")


class LoadedFile:
    """A student's file, and the connection to the worker that has loaded it.

    Args:
        workers: where workers come from.
        source: the student's file.
        forbidden: the functions that it may not call, as `grader.code.forbidden.Guard` names them.
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
        budget: SubmissionBudget,
        printed: list[str] | None = None,
    ) -> None:
        self.forbidden = forbidden
        self.tried: list[str] = []
        self.path = f"submission-{next(self._counter)}/{FILE}"
        self._workers = workers
        self._source = source
        self._budget = budget
        self._printed = printed
        linecache.cache[self.path] = (len(source), None, readable_lines(source), self.path)
        weakref.finalize(self, linecache.cache.pop, self.path, None)
        self._connection = self._load()

    def close(self) -> None:
        """End the worker."""
        self._connection.close()

    def begin(self) -> None:
        """Begin a test."""
        self._connection.begin()

    def names(self) -> list[str]:
        """Return the names of the functions and classes in the student's file."""
        self.connection()
        return self._names

    def listing(self) -> ModuleType:
        """Return a module with the student's names, for those who look for a similar one."""
        module = ModuleType(MODULE)
        vars(module).update(dict.fromkeys(self._names, remote_value))
        return module

    def connection(self) -> Connection:
        """Return the connection to the worker, to a new one if it has ended."""
        if self._connection.dead:
            self._connection = self._load()
        return self._connection

    def _load(self) -> Connection:
        process = self._workers.spawn(self.forbidden, self._source)
        connection = Connection(process, self._budget, self._printed)
        source = torch.frombuffer(bytearray(self._source + b"\n"), dtype=torch.uint8)
        try:
            connection.put([source])
            response, _ = connection.exchange(Load(self.forbidden, self._printed is not None))
        except WorkerFailure as failure:
            raise CannotLoad(failure.status, while_imported(failure)) from None
        with connection.checked():
            error = response.error
            exception = None if error is None else read_exception(error, self.path)
            self._names = [identifier(name) for name in response.names]
            self.tried = sentences_on(response.tried)
        if exception is not None:
            connection.close()
            raise self._judge_load(exception)
        return connection

    def _judge_load(self, exception: Exception) -> CannotLoad:
        try:
            raise_as_students(exception, self.path)
        except Exception as raised:
            return judge_load(raised, Path(self.path))


class Caller:
    """Makes the calls of the tests in the worker that has the student's file.

    Args:
        file: the student's.

    Attributes:
        called: the first forbidden function that was called, or None.
        costs: what counts during a request, and gets what the worker counted.
    """

    def __init__(self, file: LoadedFile) -> None:
        self.called: str | None = None
        self.costs: list[Cost] = []
        self._file = file

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Let nothing count that this side does for a request; the worker counts."""
        if not counters():
            yield
            return
        with elsewhere() as self.costs:
            try:
                yield
            finally:
                self.costs = []

    def call(
        self, subject: Subject, calls: Sequence[Call], seeds: Sequence[int] | None = None
    ) -> list[Any]:
        """Call a function, a method or a module in the worker.

        Args:
            subject: what is called.
            calls: its calls.
            seeds: what the global generator is seeded with before each.

        Raises:
            TypeError: an argument can't be sent.
            Mismatch: the call changed what it may not change.
            WorkerFailure: there is no response, or none that can be read.
            ForbiddenCall: a forbidden function was called.
            Exception: what the student's code raised.
        """
        found: list[Any] = []
        with self.apart():
            for start in range(0, len(calls), _CALLS_AT_ONCE):
                end = start + _CALLS_AT_ONCE
                some = None if seeds is None else [*seeds[start:end]]
                found += self._call(subject, calls[start:end], some)
        return found

    def _call(self, subject: Subject, calls: Sequence[Call], seeds: list[int] | None) -> list[Any]:
        connection, twin = self._connection_of(subject), subject.twin
        # Pack: the arguments, the weights that changed, the state of this process.
        packer = ArgumentPacker(connection)
        try:
            arguments = packer.calls(calls, not self.costs and torch.is_grad_enabled())
        except Unsendable as reason:
            raise TypeError(f"can't be handed to a student's code in grading: {reason}") from None
        target, setting, places = self._put(subject, packer, connection)
        # Send and receive.
        request = CallRequest(target, setting, arguments, [*packer.weights], seeds)
        response, tensors = connection.exchange(request)
        # Unpack: what was drawn and counted, how it ended, what was changed, what came back.
        if seeds:
            torch.default_generator.manual_seed(seeds[-1])
        changed: list[Any] = []
        weights_changed: list[str] = []
        values: list[Any] = []
        with connection.checked():
            for number in response.stale:
                spoil(connection.kept(number), subject.label)
            ending = self._ending(response, packer)
            if ending is None:
                changed = _changed_arguments(response, packer, connection, places)
                for number in response.learning:  # as it would be without a boundary
                    packer.arguments[numbered(number, len(packer.arguments))][0].requires_grad_()
                _mark_lists(response, packer)
                values = self._values(response, connection, tensors, packer)
            if twin is not None and (ending is None or response.state is not None):
                # Code that raises may have changed modes and buffers, too.
                weights_changed = twin.take(response, tensors, subject.root)
        self._raise(ending)
        if changed:
            marked = [mark(argument, connection.count_mark()) for argument in changed]
            if not all(marked):
                raise Mismatch("Your code changed one of its arguments.")
        if weights_changed:
            raise Mismatch(f"Your code changed its own weights ({weights_changed[0]}) in a call.")
        if response.overwritten:
            raise overwritten(subject.label)
        return values

    def attribute(self, subject: Subject) -> Any:
        """Return an attribute of the student's module, or of a module in it.

        Raises:
            AttributeError: there is none.
            Exception: as `call` does.
        """
        with self.apart():
            return self._attribute(subject)

    def _attribute(self, subject: Subject) -> Any:
        connection = self._connection_of(subject)
        packer = ArgumentPacker(connection)
        packer.calls([Call()], False)
        target, setting, _ = self._put(subject, packer, connection)
        response, tensors = connection.exchange(AttributeRequest(target, setting))
        with connection.checked():
            ending, found, is_method = self._ending(response, packer), None, False
            if ending is None:
                (value,) = response.values
                is_method = type(value) is OtherValue and value.is_callable
                if not is_method:
                    (found,) = self._values(response, connection, tensors, packer)
        self._raise(ending, subject)
        return RemoteFunction(self, subject) if is_method else found

    # What a request is about

    def _put(
        self, subject: Subject, packer: RequestPacker, connection: Connection
    ) -> tuple[RequestTarget, Setting, list[int]]:
        """Put a request's tensors where the worker sees them.

        Returns:
            What the request is about, the state of this process, and the tensors' places.
        """
        target, setting = self._target(subject, packer), self._setting(packer)
        places = connection.put(packer.tensors)
        if subject.twin is not None:
            subject.twin.placed(places, packer)
        return target, setting, places

    def _connection_of(self, subject: Subject) -> Connection:
        if subject.reference is not None:
            return living(subject.reference._connection, subject.reference)
        if subject.twin is not None:
            return living(subject.twin.connection, subject.root)
        return self._file.connection()

    def _target(self, subject: Subject, packer: RequestPacker) -> RequestTarget:
        if subject.reference is not None:
            return RequestTarget(subject.name, reference=subject.reference._number)
        if subject.twin is None:
            return RequestTarget(subject.name)
        state = subject.twin.state(subject.root, packer)
        return RequestTarget(subject.name, subject.twin.number, subject.path, None, state)

    def _setting(self, packer: RequestPacker) -> Setting:
        packer.tensors.append(torch.default_generator.get_state())
        random, dtype = len(packer.tensors) - 1, NAMES[torch.get_default_dtype()]
        grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        return Setting(random, dtype, grad, inference, bool(self.costs))

    # What a response says

    def _ending(self, response: Response, packer: RequestPacker) -> Exception | None:
        """Draw what the worker drew, count what it counted; return what it ended with."""
        if response.moved:
            torch.rand(1)
        strict = bool(response.generators)
        for generator, drew in zip(packer.generators, response.generators, strict=strict):
            if drew:
                torch.rand(1, generator=generator)
        for cost in self.costs:
            if response.cost is None:
                raise ProtocolError("nothing was counted")
            cost.add(*response.cost)
        if response.grad is not None:  # code that leaves gradients off leaves them off for the test
            torch._C._set_grad_enabled(response.grad)
        if (response.called, response.unsendable, response.error) == (None, None, None):
            return None
        return ending_of(response, self._file.forbidden, self._file.path)

    def _raise(self, ending: Exception | None, subject: Subject | None = None) -> None:
        """Raise what a request ended with, if it did not end well."""
        if ending is None:
            return
        if isinstance(ending, ForbiddenCall):
            self.called = self.called or str(ending)
        if subject is not None and subject.is_of_file and isinstance(ending, AttributeError):
            listing = self._file.listing()
            raise AttributeError(str(ending), name=subject.name, obj=listing)
        raise_as_students(ending, self._file.path)

    def settle(self, connection: Connection, response: Response) -> None:
        """Raise what a request for gradients ended with, after what it cost was counted."""
        with connection.checked():
            ending = self._ending(response, RequestPacker())
        self._raise(ending)

    def _values(
        self,
        response: Response,
        connection: Connection,
        tensors: list[Tensor],
        packer: RequestPacker,
    ) -> list[Any]:
        """Return what came back, call by call, connected to this side's autograd."""
        if len(response.values) != len(packer.graphs):
            raise ProtocolError("there are not as many results as calls")
        reader = ResultReader(tensors, self, connection)
        if response.graphs:
            self._connect(response.graphs, reader, packer, connection)
        values = [*map(reader.read, response.values)]
        for place, number in enumerate(response.results):  # forgotten when no test holds it
            if place in reader.results:
                connection.keep(number, reader.results[place])
        return values

    def _connect(
        self,
        graphs: list[GraphForm],
        reader: ResultReader,
        packer: RequestPacker,
        connection: Connection,
    ) -> None:
        """Make the reader know the tensors that the calls' graphs end in."""
        last = -1
        for graph in graphs:
            if numbered(graph.call, len(packer.graphs)) <= last:
                raise ProtocolError("a call has several graphs")
            last = graph.call
            found = tuple(reader.plain(output) for output in graph.outputs)
            inputs, upstream = packer.graphs[graph.call]
            foreseen = None
            if graph.foreseen is not None and upstream is not None:
                foreseen = upstream, graph.foreseen, reader.tensors
            backward = Backward(self, connection, graph.number, foreseen)
            outputs = connect(backward, found, [*inputs, *packer.weights.values()])
            reader.outputs += outputs
            for written, output in zip(graph.outputs, outputs, strict=True):
                if type(written) is TensorValue and written.result is not None:
                    reader.results[written.result] = output


class ArgumentPacker(RequestPacker):
    """Writes a test's values: random generators, too, and references to what the worker holds.

    Args:
        connection: to the worker.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def special(self, value: Any) -> AnyValue:
        """Add a random generator, by its state; name what the worker holds."""
        if isinstance(value, torch.Generator):
            return self.generator(value)
        if isinstance(value, PutIn):
            raise Mismatch("Your code changed a list that it had been given.")
        if isinstance(value, RemoteReference):
            if living(value._connection, value) is not self._connection:
                raise Unsendable(f"a {type(value).__name__} of another file")
            return ReferenceValue(value._number)
        return super().special(value)

    def of_class(self, value: Any, written: Any) -> AnyValue:
        """Return what stands for a container, with its class if it came from the worker."""
        if not isinstance(value, StudentsContainer):
            return super().of_class(value, written)
        return StudentsValue(written, type(value).__name__)


class ResultReader(ResponseReader):
    """Reads a worker's values: tensors of this side's graph, modules, references.

    Args:
        tensors: the response's.
        caller: calls what is read.
        connection: to the worker that responded.
    """

    def __init__(self, tensors: list[Tensor], caller: Caller, connection: Connection) -> None:
        super().__init__(tensors)
        self._caller = caller
        self._connection = connection
        self._references = 0

    def form(self, value: FormValue) -> Tensor:
        """Return a tensor without entries that no comparison takes for an answer."""
        return super().form(value).as_subclass(Formal)

    def special(self, value: AnyValue) -> Any:
        """Return a module, or a stand-in for something that can't be sent."""
        if type(value) is OutputValue:
            return self.outputs[numbered(value.number, len(self.outputs))]
        if type(value) is ModuleValue:
            twin = Twin(self._connection, value.number)
            return build_module(self._caller, twin, value.module, self.tensors)
        if type(value) is ReferenceValue:
            self._references += 1
            if self._references > MAX_REFERENCES:
                raise ProtocolError("too many objects")
            return reference(self._caller, self._connection, value)
        if type(value) is StudentsValue:
            return container_of_class(self.read(value.plain), value)
        if type(value) is OtherValue:
            return remote_value(identifier(value.name))
        return super().special(value)


# Arguments that a call changed: which they are, and how a test is made to see it


def _changed_arguments(
    response: Response, packer: RequestPacker, connection: Connection, places: list[int]
) -> list[Any]:
    """Return the arguments that a call changed.

    That their entries did is seen where they lie. That one got another form, or other memory, is
    what the worker says.
    """
    holds, count = connection.memory.holds, len(packer.arguments)
    moved = {numbered(number, count) for number in response.moved_away}
    return [
        argument
        for number, (argument, sent) in enumerate(packer.arguments)
        if number in moved or not holds(places[sent], packer.tensors[sent])
    ]


def _mark_lists(response: Response, packer: RequestPacker) -> None:
    """Make the lists that a call changed, as the worker says, differ from what they were.

    What the call put into them stays there. Here something is added that can't be used.
    """
    lists = packer.lists
    for number in {numbered(number, len(lists)) for number in response.changed_lists}:
        lists[number].append(PutIn())


def mark(argument: Any, turn: int) -> bool:
    """Make a changed argument differ from what it was, in a way that nobody can make use of.

    One entry changes: `torch.equal` sees it. The smallest float moves by one unit in its last
    place, which no comparison with a tolerance sees. An integer comes nearer to 0, so that it stays
    an index; a truth value turns.

    Args:
        argument: a tensor or an array.
        turn: chooses the place among integers and truth values, so that no second change undoes
            the first.

    Returns:
        Whether that was possible.
    """
    is_of_numpy = isinstance(argument, numpy.ndarray)
    values = numpy.ndarray.view(argument, numpy.ndarray) if is_of_numpy else argument.detach()
    if is_of_numpy and not values.flags.writeable:
        return False
    numbers = entries(values)
    place = _place_of_smallest(numbers) if is_float(values) else _place_in_turn(numbers, turn)
    if place is None:
        return False
    before = numbers[place].item()
    values[place] = _another(before, values.dtype)
    return bool(entries(values)[place] != before)


_EntryPlace = tuple[int, ...]


def _place_of_smallest(numbers: Array) -> _EntryPlace | None:
    usable = numpy.isfinite(numbers) & (numbers != 0)
    if not usable.any():
        usable = numpy.isfinite(numbers)  # then a zero becomes the smallest number
    if not usable.any():
        return None
    return _place(numpy.where(usable, numpy.abs(numbers), math.inf).argmin(), numbers)


def _place_in_turn(numbers: Array, turn: int) -> _EntryPlace | None:
    return _place(turn % numbers.size, numbers) if numbers.size > 1 else None


def _place(number: Any, numbers: Array) -> _EntryPlace:
    return tuple(int(index) for index in numpy.unravel_index(number, numbers.shape))


def _another(before: Any, dtype: Any) -> Any:
    if isinstance(before, bool):
        return not before
    if isinstance(before, int):
        return before - 1 if before > 0 else before + 1
    form = torch.finfo(dtype) if isinstance(dtype, torch.dtype) else numpy.finfo(dtype)
    # A relative step of two units, which rounding in half precision does not lose; to 0, because
    # the largest float has none above it.
    return before * (1 - 2 * float(form.eps)) if before else float(form.tiny)
