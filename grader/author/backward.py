"""Softmax with a wrong gradient: what goes wrong where people write the backward pass by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

BACKWARD = {
    "along the last": (
        "the backward pass of softmax sums along the last dimension, whatever dimension is meant",
        "Over which numbers does the sum in the backward pass run, if softmax runs along dim?",
    ),
    "everything": (
        "the backward pass of softmax sums over all slices together, not over each for itself",
        "Which weights change when one number of a slice changes?",
    ),
    "diagonal": (
        "the backward pass of softmax forgets that each weight depends on the other numbers, too: "
        "it is w (1 - w) times what comes in",
        "When one number grows, its own weight grows. What becomes of the other weights?",
    ),
    "other ones only": (
        "the backward pass of softmax leaves out what each weight owes to its own number",
        "When one number grows, what becomes of its own weight, and what of the others?",
    ),
    "not weighted": (
        "in the backward pass of softmax the last product, with the weights, is forgotten",
        "A weight near 0 hardly changes, whatever its number does. Where does your backward pass "
        "say so?",
    ),
    "sum not weighted": (
        "in the backward pass of softmax what comes in is summed without the weights",
        "What is the average of what comes in, by which each entry is made smaller?",
    ),
    "mean": (
        "in the backward pass of softmax a mean stands in place of the sum",
        "Is something divided by the number of entries that should not be?",
    ),
    "added": (
        "in the backward pass of softmax the sum is added, and not subtracted",
        "All numbers of a slice together can be moved without any effect. To what should the "
        "gradients of a slice add up?",
    ),
    "minus": (
        "the backward pass of softmax has the wrong sign",
        "When one number grows, its own weight grows. Does your gradient say so?",
    ),
    "of the logarithm": (
        "the backward pass is that of log-softmax, not that of softmax",
        "Which function's derivative is it that you took? Compare it with a small step.",
    ),
    "of a sigmoid": (
        "the backward pass of softmax takes no notice of what comes in from above",
        "The gradient of a later result comes in. Where does your backward pass use it?",
    ),
    "passed on": (
        "the gradient passes softmax unchanged, as if the backward pass had nothing to do there",
        "How does a weight change when its number does? That factor belongs into the gradient.",
    ),
    "clipped": (
        "gradients are clipped on their way back, so that large ones come out too small",
        "The gradient of twice a result is twice the gradient. Is it so with yours? Clipping is "
        "the business of who trains.",
    ),
}
"""Wrong gradients by name, with what to tell of them."""

_MOST = 100.0
"""Above this the fault "clipped" shows."""


def softmax_with(backward: str) -> Callable[[Tensor, int], Tensor]:
    """Return a softmax whose values are right and whose gradient is one of `BACKWARD`."""

    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
            weights = x.softmax(dim)
            ctx.save_for_backward(weights)
            ctx.dim = dim
            return weights

        @staticmethod
        def backward(ctx: Any, incoming: Tensor) -> Any:
            return _gradient(backward, ctx.saved_tensors[0], incoming, ctx.dim), None

    softmax: Callable[[Tensor, int], Tensor] = Softmax.apply
    return softmax


def _gradient(backward: str, weights: Tensor, incoming: Tensor, dim: int) -> Tensor:
    """Return what goes back through softmax."""
    product = incoming * weights
    right = product - weights * product.sum(dim, keepdim=True)
    return {
        "along the last": lambda: product - weights * product.sum(-1, keepdim=True),
        "everything": lambda: product - weights * product.sum(),
        "diagonal": lambda: product * (1 - weights),
        "other ones only": lambda: right - product * (1 - weights),
        "not weighted": lambda: incoming - product.sum(dim, keepdim=True),
        "sum not weighted": lambda: weights * (incoming - incoming.sum(dim, keepdim=True)),
        "mean": lambda: product - weights * product.mean(dim, keepdim=True),
        "added": lambda: product + weights * product.sum(dim, keepdim=True),
        "minus": lambda: -right,
        "of the logarithm": lambda: incoming - weights * incoming.sum(dim, keepdim=True),
        "of a sigmoid": lambda: weights * (1 - weights),
        "passed on": lambda: incoming,
        "clipped": lambda: right.clamp(-_MOST, _MOST),
    }[backward]()
