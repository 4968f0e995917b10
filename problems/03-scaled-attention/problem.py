"""Problem 03: attention with scaled scores, and a measurement that shows why they are scaled.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch
from torch import Tensor, nn


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return a weighted average of the values for each query, with scaled scores.

    Write it yourself: do not call torch's attention functions or modules.

    Args:
        q: queries, shape (..., n, d_k).
        k: keys, shape (..., m, d_k), with the same leading dimensions and dtype as q.
        v: values, shape (..., m, d_v), one for each key.

    Returns:
        One weighted average of the values for each query, shape (..., n, d_v).
    """
    # TODO: scores, divided by the square root of d_k; weights; averages.
    raise NotImplementedError


class ScaledAttention(nn.Module):
    """Self-attention with one head and scaled scores.

    Args:
        n_embd: the embedding width C.
        bias: whether the three layers have a bias.

    Attributes:
        query: nn.Linear(n_embd, n_embd), from embeddings to queries.
        key: nn.Linear(n_embd, n_embd), from embeddings to keys.
        value: nn.Linear(n_embd, n_embd), from embeddings to values.
    """

    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        # TODO: create the three layers.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Let every position of a sequence attend to all positions.

        Args:
            x: embeddings, shape (B, T, C).

        Returns:
            Weighted averages of values, shape (B, T, C).
        """
        # TODO: compute queries, keys and values of x, then their attention.
        raise NotImplementedError


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    """Measure the variance of the dot products of random vectors.

    Args:
        d_k: the dimension of each vector. The entries are drawn from N(0, 1).
        n_pairs: the number of (query, key) pairs to draw, at least 2.
        scaled: whether each dot product is divided by the square root of d_k.
        generator: the source of random numbers; None means torch's global generator.

    Returns:
        The population variance of the n_pairs dot products, as a Python float.
    """
    # TODO: draw the pairs, compute the dot product of each pair, return the variance.
    raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
