"""Gradients: those that are asked for, and those that will be, by what came with a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from grader.isolation.protocol import Header, Unsendable
from grader.isolation.worker.exceptions import attempt, speaks_of_meta
from grader.isolation.worker.values import AnswerPacker

# As torch.autograd.grad, which first looks at what is sure here. Taken before a student's code can
# put anything else in its place.
_run_backward = torch.autograd.Variable._execution_engine.run_backward


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


def write_gradients(answer: Header, gradients: Any, packer: AnswerPacker) -> Header:
    """Return an answer with the gradients, unless they ended in an exception."""
    if speaks_of_meta(answer.get("error")):
        answer["unsendable"] = "a gradient on the meta device, a shape without numbers"
    if "error" not in answer:
        answer["value"] = [packer.plain(gradient) for gradient in gradients]
    return answer


def foresee(
    graph: Graph, upstream: Tensor, packer: AnswerPacker, called: Callable[[], str | None]
) -> list[Header]:
    """Return the answer to who will ask for all gradients; none if it can't go with the call's.

    Args:
        graph: of the call.
        upstream: that of the gradients.
        packer: writes the answer to the call.
        called: returns which forbidden function has been called meanwhile.
    """
    if not graph.fits(upstream):
        return []
    count = len(packer.tensors)
    answer, gradients = attempt(lambda: graph.gradients([upstream], range(len(graph.leaves))))
    try:
        return [write_gradients(answer, gradients, packer) | {"called": called()}]
    except Unsendable:
        del packer.tensors[count:]
        return []
