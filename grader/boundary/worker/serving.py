"""The worker: receives requests, runs the student's code, and responds, one after the other.

From top to bottom: the loop, what a request asks for, how the student's code is run for it, and how
what came of it is written down. Whatever comes of a request, there is a response.
"""

from __future__ import annotations

import socket
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from grader.boundary.frames import Closed, send_frame
from grader.boundary.protocol.codec import (
    DTYPES,
    NAMES,
    ReceivedCall,
    RequestReader,
    ResponsePacker,
    as_array,
    class_name,
    same,
    tensors_at,
)
from grader.boundary.protocol.wire import (
    MAX_REFERENCES,
    MODULE,
    AnyValue,
    AttributeRequest,
    BackwardRequest,
    CallRequest,
    ErrorForm,
    Gradients,
    GraphForm,
    Load,
    Memory,
    ModuleValue,
    OtherValue,
    ReferenceValue,
    Request,
    RequestTarget,
    Response,
    Setting,
    Unsendable,
    memcmp,
    read_request,
    receive,
    send,
)
from grader.boundary.worker.costs import MOST, recorded
from grader.boundary.worker.exceptions import describe_exception, describe_loading, speaks_of_meta
from grader.boundary.worker.objects import (
    StudentModule,
    describe_module,
    is_public,
    is_students,
    plain_fields,
)
from grader.boundary.worker.removal import refuse_later, remove
from grader.boundary.worker.student_file import (
    Attempts,
    hide_own_modules,
    run_source,
)
from grader.code.cost import counting
from grader.code.printed import Printed
from grader.code.returned import Results

# Taken before a student's code can put anything else in their places.
_is_grad_enabled = torch.is_grad_enabled
_state = torch.default_generator.get_state
_set_state = torch.default_generator.set_state
_seed = torch.default_generator.manual_seed
_state_of = torch.Generator.get_state
_address = torch._C.TensorBase.data_ptr
# As torch.autograd.grad, which first looks at what is sure here.
_run_backward = torch.autograd.Variable._execution_engine.run_backward

_STATE_BYTES = _state().nbytes
_RESULTS_WATCHED = 64
_MOST_PRINTED = 20_000
_NAMES_TOLD = 2000


def main(
    channel: socket.socket,
    memory: Memory,
    called: list[str] | None = None,
) -> None:
    """Respond to requests until the other side closes the connection.

    Args:
        channel: to the trusted process.
        memory: shared with it.
        called: where the first call of a forbidden function is noted, if they have been taken away
            from this process already.
    """
    worker = Worker(called, memory)
    while True:
        try:
            text, _ = receive(channel)
        except Closed:
            return
        request = read_request(text)
        try:
            response, tensors = worker.respond(request)
        except BaseException as error:  # what students' objects do where they are only looked at
            response, tensors = _refusal(error), []
        released = worker.released()
        try:
            _send(channel, memory, response, tensors, request.id, released)
        except OSError:
            raise  # the connection is broken
        except Exception as error:
            _send(channel, memory, _refusal(error), [], request.id, released)
        del response, tensors, request  # what they hold isn't needed while this waits


def serve_unconfined(channel: socket.socket, memory: int | str) -> None:
    """Be a worker that is a fresh interpreter, where there is no prefork server.

    Args:
        channel: to the trusted process.
        memory: by what the shared memory is found.
    """
    hide_own_modules()
    send_frame(channel, b"")
    main(channel, Memory.attached(memory))


def _send(
    channel: socket.socket,
    memory: Memory,
    response: Response,
    tensors: list[Tensor],
    id: int,
    released: list[int],
) -> None:
    response.id, response.released = id, released
    response.tensors = [(NAMES[tensor.dtype], [*tensor.shape]) for tensor in tensors]
    send(channel, response, memory.write_response(tensors))


def _refusal(error: BaseException) -> Response:
    """Return the response to a request whose response can't be written."""
    raises = f"something that raises {class_name(type(error))} when it is looked at"
    return Response(unsendable=str(error) if isinstance(error, Unsendable) else raises)


def run_file(source: bytes, module: ModuleType) -> ErrorForm | None:
    """Run a file's source as a module; return what was raised, or None."""
    try:
        run_source(source, module)
    except BaseException as exception:
        return describe_loading(exception, source)
    return None


def public_names(module: ModuleType) -> list[str]:
    """Return the names of the functions and classes that a test could call, the latest of many."""
    members = list(vars(module).items())
    names = [name for name, value in members if is_public(name) and callable(value)]
    return names[-_NAMES_TOLD:]


class Worker:
    """One student's module and what it has made so far.

    Args:
        called: where the first call of a forbidden function is noted, if they have been taken away
            from this process already; otherwise None.
        memory: brings the tensors of requests.
    """

    def __init__(self, called: list[str] | None, memory: Memory) -> None:
        self._memory = memory
        self._needed: dict[int, weakref.KeyedRef[int, Any]] = {}
        self._gone: list[weakref.KeyedRef[int, Any]] = []
        self._module = ModuleType(MODULE)
        self._kept = Registry()
        self._random = RandomState()
        self._is_prepared = called is not None
        self._called = [] if called is None else called
        self._printed: Printed | None = None
        self._do: dict[Any, Callable[[Any, RequestReader], tuple[Response, list[Tensor]]]] = {
            Load: self._load,
            CallRequest: self._call,
            AttributeRequest: self._attribute,
            BackwardRequest: self._backward,
        }

    def respond(self, request: Request) -> tuple[Response, list[Tensor]]:
        """Carry out one request and return the response with its tensors.

        What the student's code raises is part of the response.
        """
        tensors = tensors_at(request.placed, self._memory.bytes, self._needed, self._gone)
        reader = RequestReader(tensors, self._kept.things, vars(self._module))
        if request.begins:
            self._kept.forget_all()
        for number in request.free:
            self._kept.free(number)
        response, tensors = self._do[type(request.do)](request.do, reader)
        if response.called is None:  # also while the response was written down
            response.called = self._first_called()
        if self._printed is not None:
            response.printed = self._printed.take()
        return response, tensors

    def released(self) -> list[int]:
        """Return the places in the memory that nothing refers to any more, since the last time."""
        gone = self._gone[:]
        del self._gone[: len(gone)]
        for each in gone:
            del self._needed[each.key]
        return [each.key for each in gone]

    # The requests

    def _load(self, do: Load, reader: RequestReader) -> tuple[Response, list[Tensor]]:
        if do.capture:
            self._printed = sys.stdout = sys.stderr = Printed(_MOST_PRINTED)
        if not self._is_prepared:
            remove(do.forbidden, self._called)
        refuse_later(do.forbidden, self._called)
        attempts = Attempts()
        error = run_file(as_array(reader.tensors[0]).tobytes(), self._module)
        self._called.clear()  # what was called while the file was loaded is no offence
        names = public_names(self._module)
        return Response(error=error, names=names, tried=attempts.found()), []

    def _call(self, do: CallRequest, reader: RequestReader) -> tuple[Response, list[Tensor]]:
        module, weights = self._updated(do.target, reader, do.weights)
        owner = self._owner(do.target)
        calls = reader.calls(do.calls)
        response, results = self._run(
            lambda: _each(_named(owner, do.target), calls, do.seeds, self._random.seed),
            do.setting,
            reader,
        )
        found: list[Any] = []
        if results is not None:
            found, response.overwritten = results.found, results.some_overwritten
        response.stale = self._kept.changed_results()
        response.generators = _moved_generators(reader)
        return self._written(response, found, reader, calls, module, weights)

    def _attribute(
        self, do: AttributeRequest, reader: RequestReader
    ) -> tuple[Response, list[Tensor]]:
        self._updated(do.target, reader, [])
        owner, name = self._owner(do.target), do.target.name
        response, values = self._run(lambda: [getattr(owner, name)], do.setting, reader)
        calls = [ReceivedCall([], {}, [], None)]
        return self._written(response, values or [], reader, calls, None, [])

    def _backward(
        self, do: BackwardRequest, reader: RequestReader
    ) -> tuple[Response, list[Tensor]]:
        graph, packer = self._kept.things[do.graph], ResponsePacker()
        upstream = [None if g is None else reader.plain(g) for g in do.upstream]
        response, found = _counted(lambda: graph.gradients(upstream, do.wanted), do.count)
        with _counted_on(response):
            response.gradients = _write_gradients(response.error, found, packer)
        response.error = None
        return response, packer.tensors

    # How the student's code is run

    def _first_called(self) -> str | None:
        """Return the forbidden function that was called since the last time, or None."""
        return self._called.pop() if self._called else None

    def _updated(
        self, target: RequestTarget, reader: RequestReader, weights: list[str]
    ) -> tuple[StudentModule | None, list[Tensor]]:
        """Bring a module up to date; return it with the parameters that want gradients."""
        if target.module is None or target.state is None:
            return None, []
        module: StudentModule = self._kept.things[target.module]
        return module, module.update(target.state, reader, weights)

    def _owner(self, target: RequestTarget) -> Any:
        if target.reference is not None:
            return self._kept.things[target.reference]
        if target.module is None:
            return self._module
        return self._kept.things[target.module].module.get_submodule(target.path)

    def _run(
        self, function: Callable[[], Any], setting: Setting, reader: RequestReader
    ) -> tuple[Response, Any]:
        """Run the student's code in the state that the request asks for."""
        dtype = DTYPES[setting.dtype]
        self._random.restore(reader.tensors[setting.random])
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)
        torch._C._set_grad_enabled(setting.grad)
        with torch.inference_mode() if setting.inference else nullcontext():
            response, values = _counted(function, setting.count)
            response.grad = _is_grad_enabled()
        torch._C._set_grad_enabled(True)
        response.moved = self._random.has_moved()
        return response, values

    # How what came of it is written down

    def _written(
        self,
        response: Response,
        values: list[Any],
        reader: RequestReader,
        calls: Sequence[ReceivedCall],
        module: StudentModule | None,
        weights: list[Tensor],
    ) -> tuple[Response, list[Tensor]]:
        """Write down what calls returned, and keep what later requests may refer to."""
        packer, value, graphs = StudentsPacker(self._kept), None, []
        response.moved_away, response.learning = reader.changed_arguments()
        response.changed_lists = reader.changed_lists()
        try:
            with _counted_on(response):
                if response.error is None:
                    for call, value in zip(calls, values, strict=True):
                        start = len(packer.outputs)
                        response.values.append(packer.pack(value))
                        graphs.append(Graph(packer.outputs[start:], call.leaves + weights))
                if module is not None:
                    response.state = module.changes(packer)
        except Unsendable as reason:
            response.unsendable = str(reason)
            return _without_values(response), []
        except BaseException as error:  # a value that fights back when it is looked at
            raised = describe_exception(error)
            if raised.kind == "MemoryError":
                response.error = raised
            else:
                response.unsendable = f"a {class_name(type(value))} that raises {raised.name}"
            return _without_values(response), []
        response.results = self._kept.watch(packer.results)
        response.called = self._first_called()
        response.graphs = self._kept.keep_graphs(graphs, packer)
        for graph in response.graphs if response.called is None else ():
            upstream = calls[graph.call].upstream
            if upstream is not None:
                kept = self._kept.things[graph.number]
                graph.foreseen = _foresee(kept, upstream, packer, self._first_called)
        return response, packer.tensors


def _each(
    function: Callable[..., Any],
    calls: Sequence[ReceivedCall],
    seeds: list[int] | None,
    seed: Callable[[int], None],
) -> Results:
    """Call a function with each of these arguments."""
    results = Results()
    for number, call in enumerate(calls):
        if seeds is not None:
            seed(seeds[number])
        results.add(function(*call.args, **call.kwargs))
    return results


# What the student's code costs, for the requests that ask for it


_STOPPED = "what it costs, because it stopped the counting"


def _counted(function: Callable[[], Any], count: bool) -> tuple[Response, Any]:
    """Run the student's code, and say what it cost if that is wanted.

    Returns:
        How it ended, for the response, and its value.
    """
    if not count:
        return _attempt(function)
    with recorded() as products, counting() as cost:
        response, value = _attempt(function)
    response.cost = _at_most(max(cost.operations, *products), cost.elements, cost.largest)
    if MOST in products:
        response.unsendable = _STOPPED
    return response, value


def _attempt(function: Callable[[], Any]) -> tuple[Response, Any]:
    try:
        return Response(), function()
    except BaseException as exception:
        return Response(error=describe_exception(exception)), None


def _at_most(*numbers: int) -> tuple[int, int, int]:
    operations, elements, largest = (min(number, MOST) for number in numbers)
    return operations, elements, largest


@contextmanager
def _counted_on(response: Response) -> Iterator[None]:
    """Go on counting, if that was wanted, while a value is written down: it may be computed now."""
    if response.cost is None:
        yield
        return
    before, elements, largest = response.cost
    with recorded() as products, counting() as cost:
        yield
    now = before + max(cost.operations, *products), elements + cost.elements, largest
    response.cost = _at_most(*now)


def _without_values(response: Response) -> Response:
    response.values, response.state = [], None
    return response


def _named(owner: Any, target: RequestTarget) -> Any:
    """Return what is called: something found by its name, or a module itself."""
    return getattr(owner, target.name) if target.name else owner


class StudentsPacker(ResponsePacker):
    """Writes the student's values. Modules and objects of the student's are kept and described.

    Args:
        kept: keeps them.
    """

    def __init__(self, kept: Registry) -> None:
        super().__init__()
        self._kept = kept
        self._references = 0

    def special(self, value: Any) -> AnyValue:
        """Describe a module or an object of the student's; of all else name only the type."""
        if isinstance(value, nn.Module):
            described = describe_module(value, self)
            return ModuleValue(self._kept.keep(StudentModule(value)), described)
        if is_students(value):
            self._references += 1
            if self._references > MAX_REFERENCES:
                raise Unsendable("it has too many objects")
            number = self._kept.keep(value)
            return ReferenceValue(number, class_name(type(value)), plain_fields(value))
        return OtherValue(class_name(type(value)), callable(value))


class RandomState:
    """The global random state, which is that of the test when the student's code begins."""

    def __init__(self) -> None:
        self._before = _state()

    def restore(self, state: Tensor) -> None:
        """Set the state that a request asks for."""
        _set_state(state)
        self._before = state

    def seed(self, seed: int) -> None:
        """Seed the global generator, as the test would do just before a call."""
        _seed(seed)
        self._before = _state()

    def has_moved(self) -> bool:
        """Return whether anything was drawn since the last time that the state was set."""
        return _differ(_state(), self._before)


def _moved_generators(reader: RequestReader) -> list[bool]:
    """Return of each random generator among the arguments whether anything was drawn from it."""
    return [_differ(_state_of(generator), before) for generator, before in reader.generators]


def _differ(state: Tensor, before: Tensor) -> bool:
    return bool(memcmp(_address(state), _address(before), _STATE_BYTES))


# Gradients: those that are asked for, and those that will be, by what came with a call


class Graph(NamedTuple):
    """What is kept of a call for gradients.

    Attributes:
        outputs: the tensors that a gradient can come back to.
        leaves: those that gradients can be asked for.
    """

    outputs: list[Tensor]
    leaves: list[Tensor]

    def gradients(self, upstream: Sequence[Tensor | None], wanted: Sequence[int]) -> Any:
        """Return the gradients of the wanted leaves; None for one that isn't reached."""
        pairs = [(o, g) for o, g in zip(self.outputs, upstream, strict=True) if g is not None]
        return _run_backward(
            tuple(output for output, _ in pairs),
            tuple(gradient for _, gradient in pairs),
            True,  # the graph is kept: a test may ask again
            False,  # gradients have no gradients
            tuple(self.leaves[number] for number in wanted),
            True,  # some may not be reached
            accumulate_grad=False,
        )

    def fits(self, upstream: Tensor) -> bool:
        """Return whether this can be the upstream gradient of all that was returned."""
        if len(self.outputs) != 1 or not self.leaves:
            return False
        (output,) = self.outputs
        return output.shape == upstream.shape and output.dtype == upstream.dtype


def _write_gradients(error: Any, gradients: Any, packer: ResponsePacker) -> Gradients:
    """Return gradients as they are sent, or how taking them ended."""
    if error is not None:
        text = "a gradient on the meta device, a shape without numbers"
        return Gradients(error=error, unsendable=text if speaks_of_meta(error) else None)
    return Gradients([packer.plain(gradient) for gradient in gradients])


def _foresee(
    graph: Graph, upstream: Tensor, packer: ResponsePacker, called: Callable[[], str | None]
) -> Gradients | None:
    """Return what will be said when all gradients are asked for; None if it can't go with a call.

    Args:
        graph: of the call.
        upstream: that of the gradients.
        packer: writes the response to the call.
        called: returns which forbidden function has been called meanwhile.
    """
    if not graph.fits(upstream):
        return None
    count = len(packer.tensors)
    response, gradients = _counted(
        lambda: graph.gradients([upstream], range(len(graph.leaves))), False
    )
    try:
        written = _write_gradients(response.error, gradients, packer)
        written.called = called()
    except Unsendable:
        del packer.tensors[count:]
        return None
    return written


class Registry:
    """What later requests may refer to, each by a number of its own.

    Attributes:
        things: the student's modules that the trusted side knows, other objects, graphs of calls.
    """

    def __init__(self) -> None:
        self.things: dict[int, Any] = {}
        self._results: dict[int, tuple[Tensor, Tensor]] = {}
        self._count = 0

    def forget_all(self) -> None:
        """Forget everything: another test begins."""
        self.things.clear()
        self._results.clear()

    def free(self, number: int) -> None:
        """Forget what has this number."""
        self.things.pop(number, None)
        self._results.pop(number, None)

    def keep(self, thing: object) -> int:
        """Keep something, and return its number."""
        number = self._number()
        self.things[number] = thing
        return number

    def keep_graphs(self, graphs: list[Graph], packer: ResponsePacker) -> list[GraphForm]:
        """Keep the graphs of calls, and describe those that have outputs."""
        described, outputs = [], iter(packer.written_outputs)
        for call, graph in enumerate(graphs):
            if graph.outputs:
                ends = [*islice(outputs, len(graph.outputs))]
                described.append(GraphForm(call, self.keep(graph), ends))
        return described

    def watch(self, results: Sequence[tuple[Tensor, Tensor]]) -> list[int]:
        """Remember results with copies, to notice when a call changes one; return their numbers."""
        numbers = []
        for result in results:
            while len(self._results) >= _RESULTS_WATCHED:
                del self._results[next(iter(self._results))]
            numbers.append(self._number())
            self._results[numbers[-1]] = result
        return numbers

    def changed_results(self) -> list[int]:
        """Return the numbers of results that the last call changed; each is reported once."""
        changed = [n for n, (result, copy) in self._results.items() if not _is_same(result, copy)]
        for number in changed:
            del self._results[number]
        return changed

    def _number(self) -> int:
        self._count += 1
        return self._count


def _is_same(result: Tensor, copy: Tensor) -> bool:
    try:
        return same(result, copy)
    except Exception:  # what the student's code has made of it can't be looked at
        return False
