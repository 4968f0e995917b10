"""A call in the worker as a part of this side's graph: gradients are asked of the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from grader.isolation.connection import Connection, WorkerFailure
from grader.isolation.protocol import Header, Packed, ProtocolError
from grader.isolation.protocol.checks import items
from grader.isolation.protocol.tensors import own, same
from grader.isolation.protocol.values import Unpacker
from grader.isolation.proxy.values import RequestPacker
from grader.result import Status

if TYPE_CHECKING:
    from grader.isolation.proxy.caller import Caller


class Backward:
    """The worker's graph of one call, kept while this side's graph refers to it.

    Args:
        caller: made the call.
        connection: to the worker that holds the graph.
        graph: what the worker calls it.
    """

    def __init__(self, caller: Caller, connection: Connection, graph: int) -> None:
        self._caller = caller
        self._connection = connection
        self._graph = graph
        self.outputs: tuple[Tensor, ...] = ()
        self._foreseen: tuple[Tensor, Header, list[Tensor]] | None = None
        connection.keep(graph, self)

    def foresee(self, upstream: Tensor, answer: Header, tensors: list[Tensor]) -> None:
        """Take what the worker will have answered if it is asked for this gradient.

        It is read then: until a test asks, what became of the gradient says nothing.

        Args:
            upstream: the gradient of the only output.
            answer: what it answers.
            tensors: those that the answer names.
        """
        self._foreseen = upstream, answer, tensors

    def run(
        self, upstream: tuple[Tensor | None, ...], wanted: tuple[bool, ...], shapes: list[Packed]
    ) -> list[Tensor | None]:
        """Return the gradients of the inputs, None for those that aren't wanted or reached."""
        result: list[Tensor | None] = [None] * len(wanted)
        places = [place for place, flag in enumerate(wanted) if flag]
        if not places or all(gradient is None for gradient in upstream):
            return result
        if self._connection.dead:
            raise WorkerFailure(Status.CRASH, "The process that held this result has ended.")
        with self._caller.apart():
            answer, tensors = self._known(upstream, wanted) or self._ask(upstream, places)
            with self._connection.checked():
                unpacker = Unpacker(tensors)
                for place, packed in zip(places, items(answer["value"]), strict=True):
                    result[place] = _checked(unpacker.unpack(packed), shapes[place])
        return result

    def _known(
        self, upstream: tuple[Tensor | None, ...], wanted: tuple[bool, ...]
    ) -> tuple[Header, list[Tensor]] | None:
        """Return the answer that came with the call, if it is one to this; it is given once."""
        if self._foreseen is None or self._caller.costs or not all(wanted):
            return None
        (expected, answer, tensors), self._foreseen = self._foreseen, None
        if len(upstream) != 1 or upstream[0] is None or not _alike(upstream[0], expected):
            return None
        self._caller.settle(self._connection, answer, RequestPacker(self._connection))
        return answer, tensors

    def _ask(
        self, upstream: tuple[Tensor | None, ...], wanted: list[int]
    ) -> tuple[Header, list[Tensor]]:
        packer = RequestPacker(self._connection)
        gradients = [None if g is None else packer.plain(g) for g in upstream]
        header = {"do": "backward", "graph": self._graph, "upstream": gradients, "wanted": wanted}
        header["count"] = bool(self._caller.costs)
        self._connection.put(packer.tensors)
        answer, tensors = self._connection.exchange(header)
        self._caller.settle(self._connection, answer, packer)
        return answer, tensors


def _alike(upstream: Tensor, expected: Tensor) -> bool:
    return upstream.stride() == expected.stride() and same(upstream, expected)


def _checked(gradient: Any, form: Packed) -> Tensor | None:
    """Return what a worker calls a gradient, if it can be one of a tensor of this form."""
    if gradient is None:
        return None
    if not isinstance(gradient, Tensor) or gradient.is_meta:
        raise ProtocolError("a gradient has no numbers")
    if (gradient.shape, gradient.dtype) != form:
        raise ProtocolError("a gradient has another form than its tensor")
    return gradient


class _Call(torch.autograd.Function):
    """A call in the worker as one node of this side's graph."""

    @staticmethod
    def forward(ctx: Any, backward: Backward, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.backward_call = backward
        ctx.shapes = [(tensor.shape, tensor.dtype) for tensor in inputs]
        ctx.set_materialize_grads(False)
        outputs, backward.outputs = backward.outputs, ()
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Any, ...]:
        wanted = tuple(ctx.needs_input_grad[1:])
        return (None, *ctx.backward_call.run(upstream, wanted, ctx.shapes))


def connect(
    backward: Backward, outputs: tuple[Tensor, ...], inputs: list[Tensor]
) -> tuple[Tensor, ...]:
    """Return the outputs as functions of the inputs.

    Raises:
        ProtocolError: an output can't have a gradient.
    """
    if any(not isinstance(t, Tensor) or not t.is_floating_point() or t.is_meta for t in outputs):
        raise ProtocolError("an output has no gradient by nature")
    if not inputs or not torch.is_grad_enabled():
        return tuple(tensor.requires_grad_(torch.is_grad_enabled()) for tensor in outputs)
    # A view can't be marked as changed, and with several outputs autograd forbids it.
    backward.outputs = tuple(own(t) if t._is_view() else t for t in outputs)
    apply: Callable[..., tuple[Tensor, ...]] = _Call.apply
    return apply(backward, *inputs)
