"""Problem 01: similarity scores, and softmax that turns scores into weights.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch  # noqa: F401  (you will need it)
from torch import Tensor


def dot_product_similarity(q: Tensor, k: Tensor) -> Tensor:
    """Score every query against every key by their dot product.

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

    Write it yourself: torch's softmax, softmin, log_softmax and logsumexp may not be called, nor
    anything that calls them.

    Args:
        x: scores of any size, any shape, any float dtype. An entry of -inf gets the weight 0; a
            slice in which every entry is -inf gives NaN.
        dim: the dimension along which the weights sum to 1.

    Returns:
        Weights, of the shape and dtype of x.
    """
    # TODO: make it right first, then safe for large scores.
    raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
