"""Answers requests: each runs some of the student's code, and tells what came of it."""

from __future__ import annotations

import inspect
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from grader.cost import counting
from grader.isolation.protocol import MAX_NAME, MODULE, Closed, Header, Packed, Unsendable
from grader.isolation.protocol.frames import receive, send
from grader.isolation.protocol.memory import Memory, same_bytes
from grader.isolation.protocol.tensors import DTYPES, same
from grader.isolation.worker import audit_hook
from grader.isolation.worker.attempts import Attempts
from grader.isolation.worker.exceptions import attempt, class_name, describe_exception
from grader.isolation.worker.graphs import Graph, foresee, write_gradients
from grader.isolation.worker.handles import plain_fields
from grader.isolation.worker.inbox import Inbox
from grader.isolation.worker.loading import public_names, run_file
from grader.isolation.worker.objects import StudentModule, describe_module
from grader.isolation.worker.output import Printed
from grader.isolation.worker.products import MOST, recorded
from grader.isolation.worker.removal import remove
from grader.isolation.worker.values import AnswerPacker, GivenCall, Request
from grader.own_tests import run_own_tests
from grader.own_unusable import Unusable

_RESULTS_WATCHED = 64

# Taken before a student's code can put anything else in their places.
_random_state = torch.default_generator.get_state
_set_random_state = torch.default_generator.set_state
_seed = torch.default_generator.manual_seed
_state_of = torch.Generator.get_state
_is_grad_enabled = torch.is_grad_enabled
_address = torch._C.TensorBase.data_ptr
_STATE_BYTES = _random_state().nbytes


def _equal(state: Tensor, before: Tensor) -> bool:
    return same_bytes(_address(state), _address(before), _STATE_BYTES)


def _is_same(result: Tensor, copy: Tensor) -> bool:
    try:
        return same(result, copy)
    except Exception:  # one of functorch's, for example, whose time is over
        return False


_STOPPED = {"unsendable": "what it costs, because it stopped the counting"}

Answer = tuple[Header, AnswerPacker]


def _counted(function: Callable[[], Any], header: Header) -> tuple[Header, Any]:
    """Run the student's code, and tell what it cost if that was asked."""
    if not header["count"]:
        return attempt(function)
    with recorded() as products, counting() as cost:
        answer, value = attempt(function)
    numbers = max(cost.operations, *products), cost.elements, cost.largest
    answer["cost"] = [min(number, MOST) for number in numbers]
    return answer | (_STOPPED if MOST in products else {}), value


@contextmanager
def _counted_on(answer: Header) -> Iterator[None]:
    """Go on counting while a value is written down: it may be computed only now."""
    if "cost" not in answer:
        yield
        return
    with recorded() as products, counting() as cost:
        yield
    before, elements, largest = answer["cost"]
    now = before + max(cost.operations, *products), elements + cost.elements, largest
    answer["cost"] = [min(number, MOST) for number in now]


def main(channel: socket.socket, memory: Memory, called: list[str] | None = None) -> None:
    """Answer requests until the other side closes the connection.

    Args:
        channel: to the trusted process.
        memory: shared with it.
        called: where the first call of a forbidden function is noted, if they have been taken away
            from this process already.
    """
    worker, inbox = Worker(called), Inbox(memory)
    while True:
        try:
            header, _ = receive(channel)
        except Closed:
            return
        answer, tensors = _answered(worker, header, inbox.tensors(header["placed"]))
        answer["released"] = inbox.released()
        try:
            send(channel, answer, tensors, memory=memory)
        except OSError:
            raise  # the connection is broken
        except Exception as reason:
            told = _refusal(header, reason) | {"released": answer["released"]}
            send(channel, told, [])


def _answered(worker: Worker, header: Header, tensors: list[Tensor]) -> tuple[Header, list[Tensor]]:
    try:
        return worker.answer(header, worker.request(tensors))
    except BaseException as error:  # what this package does with students' objects, they may refuse
        return _refusal(header, error), []


def _refusal(header: Header, error: BaseException) -> Header:
    """Return the answer to a request whose answer can't be told."""
    raises = f"something that raises {class_name(type(error))} when it is looked at"
    told = str(error) if isinstance(error, Unsendable) else raises
    return {"id": header["id"], "unsendable": told}


class Worker:
    """One student's module and what it has made so far.

    Args:
        called: as for `main`.
    """

    def __init__(self, called: list[str] | None) -> None:
        self._module = ModuleType(MODULE)
        self._objects: dict[int, StudentModule] = {}
        self._held: dict[int, object] = {}
        self._graphs: dict[int, Graph] = {}
        self._results: dict[int, tuple[Tensor, Tensor]] = {}
        self._count = 0
        self._is_prepared = called is not None
        self._called = [] if called is None else called
        self._printed: Printed | None = None
        self._random = self._before = _random_state()
        self._is_random = False  # whether that is still the state
        self._do = {
            "load": self._load,
            "call": self._call,
            "attribute": self._attribute,
            "parameters": self._parameters,
            "backward": self._backward,
            "trial": self._trial,
        }

    def request(self, tensors: list[Tensor]) -> Request:
        """Return what reads a request's values."""
        return Request(tensors, self._held, vars(self._module))

    def answer(self, header: Header, request: Request) -> tuple[Header, list[Tensor]]:
        """Carry out one request and return the answer's header and tensors.

        What the student's code raises is part of the answer.
        """
        for number in header["free"]:
            for kept in (self._objects, self._held, self._graphs, self._results):
                kept.pop(number, None)
        answer, packer = self._do[header["do"]](header, request)
        # Also while an answer was written down.
        answer.setdefault("called", self._first_called())
        if self._printed is not None:
            answer["printed"] = self._printed.take()
        answer["id"] = header["id"]
        return answer, packer.tensors

    # The requests

    def _load(self, header: Header, request: Request) -> Answer:
        if header.get("capture"):
            self._printed = sys.stdout = sys.stderr = Printed()
        if not self._is_prepared:
            remove(header["forbidden"], self._called)
        audit_hook.install(header["forbidden"], self._called)
        attempts = Attempts()
        answer = run_file(request.tensors[0].numpy().tobytes(), self._module)
        self._called.clear()  # what was called while the file was loaded is no offence
        told = {"names": public_names(self._module), "tried": attempts.told()}
        return answer | told, AnswerPacker()

    def _call(self, header: Header, request: Request) -> Answer:
        thing, weights = self._objects.get(header["object"]), []
        if thing is not None:
            weights = thing.update(header["state"], request, header["weights"])
        function = self._function(header)
        calls = [request.call(*packed) for packed in header["calls"]]
        answer, values = self._run(
            lambda: self._each(function, calls, header["seeds"]), header, request
        )
        answer["moved_away"] = request.moved_away()
        answer["stale"] = self._some_changed()
        return self._finish(answer, values, thing, calls, weights)

    def _attribute(self, header: Header, request: Request) -> Answer:
        thing = self._objects.get(header["object"])
        if thing is not None:
            thing.update(header["state"], request, [])
        owner = self._owner(header)
        answer, value = self._run(lambda: [getattr(owner, header["name"])], header, request)
        return self._finish(answer, value, None, [request.call([], [], None)], [])

    def _parameters(self, header: Header, request: Request) -> Answer:
        function = self._function(header)
        try:
            called = function.forward if isinstance(function, nn.Module) else function
            names = [name[:MAX_NAME] for name in inspect.signature(called).parameters]
        except Exception:
            names = []  # numbers will do
        return {"value": names}, AnswerPacker()

    def _backward(self, header: Header, request: Request) -> Answer:
        graph = self._graphs[header["graph"]]
        upstream = [g if g is None else request.plain(g) for g in header["upstream"]]
        answer, gradients = _counted(lambda: graph.gradients(upstream, header["wanted"]), header)
        packer = AnswerPacker()
        with _counted_on(answer):
            return write_gradients(answer, gradients, packer), packer

    def _trial(self, header: Header, request: Request) -> Answer:
        """Run a student's own tests on the module; see `isolation.trial`."""
        source = request.tensors[0].numpy().tobytes()
        try:
            found = run_own_tests(source, self._module)
        except Unusable as reason:
            told = [reason.reason.name, reason.name, reason.other, reason.line]
            return {"unusable": told, "tests": []}, AnswerPacker()
        return {
            "tests": [[test.name, test.ended.value, test.line] for test in found]
        }, AnswerPacker()

    # What they share

    def _first_called(self) -> str | None:
        """Return the forbidden function that was called since the last time, or None."""
        return self._called.pop() if self._called else None

    def _owner(self, header: Header) -> Any:
        if header["held"] is not None:
            return self._held[header["held"]]
        thing = self._objects.get(header["object"])
        return self._module if thing is None else thing.module.get_submodule(header["path"])

    def _function(self, header: Header) -> Any:
        """Return what is called: something found by its name, or a module itself."""
        owner = self._owner(header)
        return getattr(owner, header["name"]) if header["name"] else owner

    def _run(
        self, function: Callable[[], Any], header: Header, request: Request
    ) -> tuple[Header, Any]:
        """Run the student's code in the state that the request asks for."""
        if header["random"] is not None:  # otherwise it is as before the last call
            self._random = request.tensors[header["random"]].clone()
            self._is_random = False
        if not self._is_random:
            _set_random_state(self._random)
        self._before = self._random
        if torch.get_default_dtype() is not DTYPES[header["dtype"]]:
            torch.set_default_dtype(DTYPES[header["dtype"]])
        torch._C._set_grad_enabled(header["grad"])
        answer, value = _counted(function, header)
        answer["grad"] = _is_grad_enabled()
        torch._C._set_grad_enabled(True)
        state = _random_state()
        answer["moved"] = not _equal(state, self._before)
        self._is_random = self._before is self._random and not answer["moved"]
        answer["generators"] = [
            not _equal(_state_of(generator), before) for generator, before in request.generators
        ]
        return answer, value

    def _each(
        self, function: Callable[..., Any], calls: Sequence[GivenCall], seeds: list[int] | None
    ) -> list[Any]:
        """Call a function with each of these arguments."""
        found = []
        for number, call in enumerate(calls):
            if seeds is not None:
                _seed(seeds[number])
                self._before = _random_state()
            found.append(function(*call.args, **call.kwargs))
        return found

    def _finish(
        self,
        answer: Header,
        values: Any,
        thing: StudentModule | None,
        calls: list[GivenCall],
        weights: list[Tensor],
    ) -> Answer:
        """Write down what calls returned, and keep what later requests may refer to."""
        packer, value, graphs = AnswerPacker(self._keep), None, []
        try:
            with _counted_on(answer):
                if "error" not in answer:
                    packed = answer["values"] = []
                    for call, value in zip(calls, values, strict=True):
                        start = len(packer.outputs)
                        packed.append(packer.pack(value))
                        graphs.append(Graph(packer.outputs[start:], call.leaves + weights))
                if thing is not None:
                    answer["state"] = thing.changes(packer)
        except Unsendable as reason:
            return answer | {"unsendable": str(reason)}, AnswerPacker()
        except BaseException as error:  # a value that fights back when it is looked at
            raised = describe_exception(error)
            if raised["kind"] == "MemoryError":
                return answer | {"error": raised}, AnswerPacker()
            text = f"a {class_name(type(value))} that raises {raised['name']}"
            return answer | {"unsendable": text}, AnswerPacker()
        answer["results"] = [self._watch(*result) for result in packer.results]
        answer["called"] = self._first_called()
        answer["graphs"] = told = self._keep_graphs(graphs, packer)
        for number, kept, _, foreseen in told if answer["called"] is None else ():
            upstream = calls[number].upstream
            if upstream is not None:
                foreseen += foresee(self._graphs[kept], upstream, packer, self._first_called)
        return answer, packer

    def _keep_graphs(self, graphs: list[Graph], packer: AnswerPacker) -> list[Packed]:
        """Keep the graphs of calls, and tell of each that has outputs."""
        told, outputs = [], iter(packer.packed_outputs)
        for number, graph in enumerate(graphs):
            if graph.outputs:
                kept = self._number()
                self._graphs[kept] = graph
                told.append([number, kept, [*islice(outputs, len(graph.outputs))], []])
        return told

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _keep(self, value: object, packer: AnswerPacker) -> Packed:
        """Keep a module or an object that later requests may refer to, and describe it."""
        number = self._number()
        if isinstance(value, nn.Module):
            self._objects[number] = StudentModule(value)
            return {"o": number, "module": describe_module(value, packer)}
        packer.count_handle()
        self._held[number] = value
        return {"h": number, "x": class_name(type(value)), "fields": plain_fields(value)}

    def _some_changed(self) -> bool:
        """Return whether earlier results changed; each is told once, for it was the last call's."""
        changed = [n for n, (result, copy) in self._results.items() if not _is_same(result, copy)]
        for number in changed:
            del self._results[number]
        return bool(changed)

    def _watch(self, result: Tensor, copy: Tensor) -> int:
        """Remember a result, to notice when a later call changes it."""
        while len(self._results) >= _RESULTS_WATCHED:
            del self._results[next(iter(self._results))]
        number = self._number()
        self._results[number] = result, copy
        return number
