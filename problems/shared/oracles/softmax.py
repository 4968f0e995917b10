"""Compute the expected results for problem 01 in plain Python."""

import torch

from grader.run.compare import require
from shared.oracles.attention import similarity_by_hand, softmax_by_hand


def similarity(q, k):
    """Return the expected result of dot_product_similarity."""
    batches = [t.detach().double().reshape(-1, *t.shape[-2:]).tolist() for t in (q, k)]
    scores = [similarity_by_hand(*matrices) for matrices in zip(*batches, strict=True)]
    shape = (*q.shape[:-1], k.shape[-2])
    return torch.tensor(scores, dtype=torch.float64).reshape(shape).to(q.dtype)


def similarity_gradients(q, k, upstream):
    """Return the gradients of `similarity` with respect to q and k."""
    return {"q": similarity(upstream, k.mT), "k": similarity(upstream.mT, q.mT)}


def softmax(x, dim=-1):
    """Return the softmax of each slice of x along dim."""
    return along(dim, softmax_by_hand, x)


def softmax_gradient(x, dim, upstream):
    """Return the gradient of `softmax` with respect to x."""
    return {"x": along(dim, softmax_gradient_by_hand, x, upstream)}


def softmax_gradient_by_hand(row, upstream):
    """Return the gradient of the softmax of a list.

    It is w_i (g_i - sum_j w_j g_j), with the weights w and the upstream gradient g.
    """
    weights = softmax_by_hand(row)
    mean = sum(w * g for w, g in zip(weights, upstream, strict=True))
    return [w * (g - mean) for w, g in zip(weights, upstream, strict=True)]


def along(dim, by_hand, *tensors):
    """Apply `by_hand` to each slice of the tensors along `dim`.

    `by_hand` receives a list of numbers for each tensor, and returns a list of the same length.
    """
    moved = [tensor.detach().double().movedim(dim, -1) for tensor in tensors]
    slices = [tensor.reshape(-1, tensor.shape[-1]).tolist() for tensor in moved]
    rows = [by_hand(*row) for row in zip(*slices, strict=True)]
    result = torch.tensor(rows, dtype=torch.float64).reshape(moved[0].shape)
    return result.movedim(-1, dim).to(tensors[0].dtype)


def exactly_zero(weights, call, where):
    """Require that the weights at `where`, whose scores are -inf, are exactly 0."""
    require(
        (weights[where] == 0).all(),
        f"{call}\nAn entry of -inf has a small weight, but its weight should be exactly 0.",
    )
