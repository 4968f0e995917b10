"""Softmax with a wrong gradient gives right weights, and each gradient is wrong in its own way."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from grader.author.backward import BACKWARD, softmax_with

X = torch.tensor([[0.3, -1.2, 2.1], [1.4, 0.2, -0.7], [-0.1, 0.9, 0.4]], dtype=torch.float64)
UPSTREAM = torch.tensor([[1.3, 0.4, -0.8], [-0.2, 0.7, 1.1], [0.5, -1.6, 0.9]]).double()


def gradient(weights: Tensor, x: Tensor, upstream: Tensor) -> Tensor:
    return torch.autograd.grad(weights, x, upstream)[0]


def test_weights_are_right_and_no_two_gradients_are_alike() -> None:
    x = X.clone().requires_grad_()
    upstream = 1e4 * UPSTREAM  # gradients of this size are clipped
    found = {"right": gradient(x.softmax(0), x, upstream)}
    for name in BACKWARD:
        weights = softmax_with(name)(x, 0)
        assert torch.equal(weights, x.softmax(0)), name
        found[name] = gradient(weights, x, upstream)
    for one, other in combinations(found, 2):
        assert not torch.allclose(found[one], found[other]), f"{one} is {other}"


def test_small_gradients_are_not_clipped() -> None:
    x = X.clone().requires_grad_()
    right, clipped = x.softmax(0), softmax_with("clipped")(x, 0)
    torch.testing.assert_close(gradient(clipped, x, UPSTREAM), gradient(right, x, UPSTREAM))
