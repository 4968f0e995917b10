"""Problem 02, reference solution."""

import torch
from torch import Tensor, nn


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return a weighted average of the values for each query.

    Args:
        q: queries, shape (..., n, d).
        k: keys, shape (..., m, d).
        v: values, shape (..., m, d_v).

    Returns:
        softmax(q kᵀ) v, shape (..., n, d_v).
    """
    attention_scores = q @ k.mT  # (..., n, m)
    # For each query, the weights of all keys sum to 1. The keys are the last dimension.
    attention_weights = torch.softmax(attention_scores, dim=-1)  # (..., n, m)
    return attention_weights @ v  # (..., n, d_v)


class SimpleAttention(nn.Module):
    """Self-attention with one head, without scaling and without a mask.

    Args:
        n_embd: the embedding width C of the input and the output.
        bias: whether the three layers have a bias.

    Attributes:
        query, key, value: the layers, each an nn.Linear from n_embd to n_embd.
    """

    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Let every position of a sequence attend to all positions of that sequence.

        Args:
            x: embeddings, shape (B, T, C), in the float dtype of the layers.

        Returns:
            softmax(q kᵀ) v, shape (B, T, C), in the dtype of x.
        """
        return attention(self.query(x), self.key(x), self.value(x))
