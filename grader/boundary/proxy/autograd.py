"""A call in the worker as a part of this side's graph: gradients are requested from the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from grader.boundary.connection import Connection
from grader.boundary.failures import WorkerFailure
from grader.boundary.frames import ProtocolError
from grader.boundary.protocol.codec import RequestPacker, ValueReader, own, same
from grader.boundary.protocol.wire import BackwardRequest, Gradients, Response, SomeTensor
from grader.result import Status

if TYPE_CHECKING:
    from grader.boundary.proxy.caller import Caller


_SentAhead = tuple[Tensor, Gradients, list[Tensor]]


class Backward:
    """The worker's graph of one call, kept while this side's graph refers to it.

    Args:
        caller: made the call.
        connection: to the worker that holds the graph.
        graph: what the worker calls it.
        foreseen: what the worker would say if it were asked for a gradient: the upstream gradient
            of the only output, the gradients of all inputs, and the tensors that are named there.
            It is read then: until a test asks, what became of the gradient says nothing.
    """

    def __init__(
        self, caller: Caller, connection: Connection, graph: int, foreseen: _SentAhead | None
    ) -> None:
        self._caller = caller
        self._connection = connection
        self._graph = graph
        self.outputs: tuple[Tensor, ...] = ()
        self._foreseen = foreseen
        connection.keep(graph, self)

    def run(
        self,
        upstream: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
        forms: list[tuple[torch.Size, torch.dtype]],
    ) -> list[Tensor | None]:
        """Return the gradients of the inputs, None for those that aren't wanted or reached."""
        result: list[Tensor | None] = [None] * len(wanted)
        places = [place for place, flag in enumerate(wanted) if flag]
        if not places or all(gradient is None for gradient in upstream):
            return result
        if self._connection.dead:
            raise WorkerFailure(Status.CRASH, "The process that held this result has ended.")
        with self._caller.apart():
            found, tensors = self._known(upstream, wanted) or self._ask(upstream, places)
            with self._connection.checked():
                reader = ValueReader(tensors)
                for place, value in zip(places, found, strict=True):
                    result[place] = _checked(reader, value, forms[place])
        return result

    def _known(
        self, upstream: tuple[Tensor | None, ...], wanted: tuple[bool, ...]
    ) -> tuple[list[SomeTensor], list[Tensor]] | None:
        """Return the gradients that came with the call, if they are these; they are given once."""
        if self._foreseen is None or self._caller.costs or not all(wanted):
            return None
        (expected, gradients, tensors), self._foreseen = self._foreseen, None
        if len(upstream) != 1 or upstream[0] is None or not _alike(upstream[0], expected):
            return None
        self._settle(Response(), gradients)
        return gradients.values, tensors

    def _ask(
        self, upstream: tuple[Tensor | None, ...], wanted: list[int]
    ) -> tuple[list[SomeTensor], list[Tensor]]:
        packer = RequestPacker()
        written = [None if gradient is None else packer.plain(gradient) for gradient in upstream]
        self._connection.put(packer.tensors)
        request = BackwardRequest(self._graph, written, wanted, bool(self._caller.costs))
        response, tensors = self._connection.exchange(request)
        gradients = response.gradients or Gradients()
        self._settle(response, gradients)
        return gradients.values, tensors

    def _settle(self, response: Response, gradients: Gradients) -> None:
        """Count what the worker counted, and raise what taking the gradients ended with."""
        response.called = response.called or gradients.called
        response.unsendable = response.unsendable or gradients.unsendable
        response.error = response.error or gradients.error
        self._caller.settle(self._connection, response)


def _alike(upstream: Tensor, expected: Tensor) -> bool:
    return upstream.stride() == expected.stride() and same(upstream, expected)


def _checked(
    reader: ValueReader, value: SomeTensor, form: tuple[torch.Size, torch.dtype]
) -> Tensor | None:
    """Return what a worker calls a gradient, if it can be one of a tensor of this form."""
    if value is None:
        return None
    gradient = reader.plain(value)
    if gradient.is_meta:
        raise ProtocolError("a gradient has no entries")
    if (gradient.shape, gradient.dtype) != form:
        raise ProtocolError("a gradient has another form than its tensor")
    return gradient


class _RemoteNode(torch.autograd.Function):
    """A call in the worker as one node of this side's graph."""

    @staticmethod
    def forward(ctx: Any, backward: Backward, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.backward_call = backward
        ctx.shapes = [(tensor.shape, tensor.dtype) for tensor in inputs]
        ctx.set_materialize_grads(False)
        outputs, backward.outputs = backward.outputs, ()
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
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
    apply: Callable[..., tuple[Tensor, ...]] = _RemoteNode.apply
    return apply(backward, *inputs)
