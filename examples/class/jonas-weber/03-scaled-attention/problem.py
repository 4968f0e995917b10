"""Problem 03: attention with its scores scaled, and the reason for the scale in numbers.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch
from torch import Tensor, nn


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Mix the values by how well each query fits each key.

    Write it yourself: torch's own attention functions and modules may not be called.

    Args:
        q: queries, shape (..., n, d_k).
        k: keys, shape (..., m, d_k), with the same leading dimensions and dtype as q.
        v: values, shape (..., m, d_v), one for each key.

    Returns:
        One mixture of values for each query, shape (..., n, d_v).
    """
    # TODO: scores, divided by the square root of d_k; weights; mixture.
    raise NotImplementedError


class ScaledAttention(nn.Module):
    """Self-attention with one head and scaled scores.

    Args:
        n_embd: width of the embeddings, C.
        bias: whether the three layers add a bias.

    Attributes:
        query: nn.Linear(n_embd, n_embd), from embeddings to queries.
        key: nn.Linear(n_embd, n_embd), from embeddings to keys.
        value: nn.Linear(n_embd, n_embd), from embeddings to values.
    """

    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        # TODO: make the three layers.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Let every position of a sequence attend to all positions.

        Args:
            x: embeddings, shape (B, T, C).

        Returns:
            Mixtures of values, shape (B, T, C).
        """
        # TODO: make queries, keys and values of x, and let them attend.
        raise NotImplementedError


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    """Measure how widely the dot products of random vectors scatter.

    Args:
        d_k: length of each vector; its entries are drawn from N(0, 1).
        n_pairs: how many pairs of a query and a key to draw, at least 2.
        scaled: whether each dot product is divided by the square root of d_k.
        generator: where the random numbers come from; None means torch's global generator.

    Returns:
        The population variance of the n_pairs dot products, as a Python float.
    """
    # TODO: draw the pairs, multiply each query with its own key, return the variance.
    raise NotImplementedError
