"""Carries out requests: each runs some of the student's code, and tells what came of it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from grader.isolation.protocol import MAX_NAME, MODULE, Header, Unsendable
from grader.isolation.protocol.tensors import DTYPES
from grader.isolation.worker import audit_hook
from grader.isolation.worker.attempts import Attempts
from grader.isolation.worker.costs import counted, counted_on
from grader.isolation.worker.exceptions import class_name, describe_exception
from grader.isolation.worker.graphs import Graph, foresee, write_gradients
from grader.isolation.worker.kept import Kept
from grader.isolation.worker.loading import public_names, run_file
from grader.isolation.worker.objects import StudentModule
from grader.isolation.worker.output import Printed
from grader.isolation.worker.random_state import RandomState, moved_generators
from grader.isolation.worker.removal import remove
from grader.isolation.worker.values import AnswerPacker, GivenCall, Request
from grader.own_tests import run_own_tests
from grader.own_unusable import Unusable
from grader.returned import Results

# Taken before a student's code can put anything else in its place.
_is_grad_enabled = torch.is_grad_enabled

Answer = tuple[Header, AnswerPacker]


class Worker:
    """One student's module and what it has made so far.

    Args:
        called: where the first call of a forbidden function is noted, if they have been taken away
            from this process already; otherwise None.
    """

    def __init__(self, called: list[str] | None) -> None:
        self._module = ModuleType(MODULE)
        self._kept = Kept()
        self._random = RandomState()
        self._is_prepared = called is not None
        self._called = [] if called is None else called
        self._printed: Printed | None = None
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
        return Request(tensors, self._kept.objects, vars(self._module))

    def answer(self, header: Header, request: Request) -> tuple[Header, list[Tensor]]:
        """Carry out one request and return what the answer says, and its tensors.

        What the student's code raises is part of the answer.
        """
        if header["begins"]:
            self._kept.forget_all()
        for number in header["free"]:
            self._kept.free(number)
        asks = header["asks"]
        answer, packer = self._do[asks["do"]](asks, request)
        # Also while an answer was written down.
        answer.setdefault("called", self._first_called())
        if self._printed is not None:
            answer["printed"] = self._printed.take()
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
        thing, weights = self._kept.modules.get(header["object"]), []
        if thing is not None:
            weights = thing.update(header["state"], request, header["weights"])
        owner = self._owner(header)
        calls = [request.call(*packed) for packed in header["calls"]]
        results, seeds = Results(), header["seeds"]
        answer, values = self._run(
            lambda: self._each(_named(owner, header), calls, seeds, results), header, request
        )
        answer["moved_away"] = request.moved_away()
        answer["changed_lists"] = request.changed_lists()
        answer["stale"] = self._kept.some_changed() or results.some_overwritten
        return self._finish(answer, values, thing, calls, weights)

    def _attribute(self, header: Header, request: Request) -> Answer:
        thing = self._kept.modules.get(header["object"])
        if thing is not None:
            thing.update(header["state"], request, [])
        owner = self._owner(header)
        answer, value = self._run(lambda: [getattr(owner, header["name"])], header, request)
        return self._finish(answer, value, None, [request.call([], [], None)], [])

    def _parameters(self, header: Header, request: Request) -> Answer:
        function = _named(self._owner(header), header)
        try:
            called = function.forward if isinstance(function, nn.Module) else function
            names = [name[:MAX_NAME] for name in inspect.signature(called).parameters]
        except Exception:
            names = []  # numbers will do
        return {"value": names}, AnswerPacker()

    def _backward(self, header: Header, request: Request) -> Answer:
        graph = self._kept.graphs[header["graph"]]
        upstream = [g if g is None else request.plain(g) for g in header["upstream"]]
        answer, gradients = counted(lambda: graph.gradients(upstream, header["wanted"]), header)
        packer = AnswerPacker()
        with counted_on(answer):
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
            return self._kept.objects[header["held"]]
        thing = self._kept.modules.get(header["object"])
        return self._module if thing is None else thing.module.get_submodule(header["path"])

    def _run(
        self, function: Callable[[], Any], header: Header, request: Request
    ) -> tuple[Header, Any]:
        """Run the student's code in the state that the request asks for."""
        self._random.restore(request, header["random"])
        if torch.get_default_dtype() is not DTYPES[header["dtype"]]:
            torch.set_default_dtype(DTYPES[header["dtype"]])
        torch._C._set_grad_enabled(header["grad"])
        answer, value = counted(function, header)
        answer["grad"] = _is_grad_enabled()
        torch._C._set_grad_enabled(True)
        answer["moved"] = self._random.has_moved()
        answer["generators"] = moved_generators(request)
        return answer, value

    def _each(
        self,
        function: Callable[..., Any],
        calls: Sequence[GivenCall],
        seeds: list[int] | None,
        results: Results,
    ) -> list[Any]:
        """Call a function with each of these arguments."""
        for number, call in enumerate(calls):
            if seeds is not None:
                self._random.seed(seeds[number])
            results.add(function(*call.args, **call.kwargs))
        return results.found

    def _finish(
        self,
        answer: Header,
        values: Any,
        thing: StudentModule | None,
        calls: list[GivenCall],
        weights: list[Tensor],
    ) -> Answer:
        """Write down what calls returned, and keep what later requests may refer to."""
        packer, value, graphs = AnswerPacker(self._kept.keep), None, []
        try:
            with counted_on(answer):
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
        answer["results"] = [self._kept.watch(*result) for result in packer.results]
        answer["called"] = self._first_called()
        answer["graphs"] = told = self._kept.keep_graphs(graphs, packer)
        for number, kept, _, foreseen in told if answer["called"] is None else ():
            upstream = calls[number].upstream
            if upstream is not None:
                foreseen += foresee(self._kept.graphs[kept], upstream, packer, self._first_called)
        return answer, packer


def _named(owner: Any, header: Header) -> Any:
    """Return what is called: something found by its name, or a module itself."""
    return getattr(owner, header["name"]) if header["name"] else owner
