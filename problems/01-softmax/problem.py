"""Problem 01: similarity scores, and softmax that turns scores into weights.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch  # noqa: F401  (you will need it)
from torch import Tensor


def dot_product_similarity(q: Tensor, k: Tensor) -> Tensor:
    """Return the dot product of every query with every key.

    Args:
        q: queries, shape (..., n, d).
        k: keys, shape (..., m, d), with the same leading dimensions and dtype as q.

    Returns:
        Scores, shape (..., n, m): entry (i, j) is the dot product of query i and key j, unscaled.
    """
    # TODO: compute all n x m dot products at once.
    raise NotImplementedError


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Turn scores into weights that are positive and sum to 1 along one dimension.

    Write it yourself: do not call torch's softmax, softmin, log_softmax or logsumexp, or anything
    that calls them.

    Args:
        x: scores of any magnitude, shape and float dtype. An entry of -inf has the weight 0. If
            all entries of a slice are -inf, all weights of the slice are NaN.
        dim: the dimension along which the weights sum to 1.

    Returns:
        Weights, with the shape and dtype of x.
    """
    # TODO: first make it correct, then safe for large scores.
    raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
