"""Problem 01, reference solution."""

import torch
from torch import Tensor


def dot_product_similarity(q: Tensor, k: Tensor) -> Tensor:
    """Return the dot product of every query with every key.

    Args:
        q: queries, shape (..., n, d).
        k: keys, shape (..., m, d), with the same leading dimensions and dtype as q.

    Returns:
        Scores, shape (..., n, m): entry (i, j) is the dot product of query i and key j, unscaled.
    """
    return q @ k.mT


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Turn scores into weights that are positive and sum to 1 along one dimension.

    Args:
        x: scores of any magnitude, shape and float dtype. An entry of -inf has the weight 0. If
            all entries of a slice are -inf, all weights of the slice are NaN.
        dim: the dimension along which the weights sum to 1.

    Returns:
        Weights, with the shape and dtype of x.
    """
    # exp overflows above 88 in float32. A constant cancels in the quotient, so the largest entry
    # of each slice may be subtracted first. Then no exponent is above 0.
    exponentials = torch.exp(x - x.amax(dim, keepdim=True))
    return exponentials / exponentials.sum(dim, keepdim=True)
