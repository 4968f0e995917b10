"""Problem 03, reference solution."""

import math

import torch
from torch import Tensor, nn


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return a weighted average of the values for each query, with scaled scores.

    Args:
        q: queries, shape (..., n, d_k).
        k: keys, shape (..., m, d_k), with the same leading dimensions and dtype as q.
        v: values, shape (..., m, d_v), one for each key.

    Returns:
        One weighted average of the values for each query, shape (..., n, d_v).
    """
    # The variance of a dot product grows with d_k. Divided by √d_k it stays near 1, so softmax
    # neither picks a single key nor loses its gradient when vectors get longer.
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., n, m)
    weights = torch.softmax(scores, dim=-1)  # (..., n, m), each row sums to 1
    return weights @ v  # (..., n, d_v)


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
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Let every position of a sequence attend to all positions.

        Args:
            x: embeddings, shape (B, T, C).

        Returns:
            Weighted averages of values, shape (B, T, C).
        """
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))


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
    q = torch.randn(n_pairs, d_k, generator=generator)
    k = torch.randn(n_pairs, d_k, generator=generator)
    products = (q * k).sum(-1)  # (n_pairs,)
    if scaled:
        products = products / math.sqrt(d_k)
    # torch divides by n_pairs - 1 by default.
    return products.var(correction=0).item()
