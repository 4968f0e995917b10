"""Problem 05, reference solution."""

import math

import torch
from torch import Tensor, nn


def split_heads(x: Tensor, n_head: int) -> Tensor:
    """Give every head its own slice of each token's embedding.

    Args:
        x: embeddings, shape (B, T, C).
        n_head: the number of heads; it divides C.

    Returns:
        Shape (B, n_head, T, C // n_head): head 0 holds the first C // n_head entries of each token,
        head 1 the next ones, and so on.
    """
    # Split first, then swap positions and heads. A direct reshape to the final shape would put
    # entries of different tokens into one row.
    slices = x.unflatten(-1, (n_head, -1))  # (B, T, n_head, head_dim)
    return slices.transpose(1, 2)  # (B, n_head, T, head_dim)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads' slices of each token side by side again: the inverse of split_heads.

    Args:
        x: one matrix per head, shape (B, n_head, T, head_dim).

    Returns:
        Embeddings, shape (B, T, n_head * head_dim).
    """
    return x.transpose(1, 2).flatten(2)  # (B, T, n_head * head_dim)


def attention_weights(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    """Return how much each query attends to each key.

    Args:
        q: queries, shape (..., T, head_dim).
        k: keys, shape (..., T, head_dim).
        causal: whether a query attends only to its own position and to earlier positions.

    Returns:
        Weights, shape (..., T, T); each row sums to 1.
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., T, T)
    if causal:
        # The mask is created for this length, so no maximum length has to be chosen.
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    return scores.softmax(-1)


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each on its own slice of the embedding, as in GPT-2.

    Args:
        n_embd: the embedding width C.
        n_head: the number of heads.
        dropout: the share of weights, and of output entries, that is dropped in training.
        causal: whether a token attends only to itself and to earlier tokens.
        bias: whether the linear layers have a bias.

    Raises:
        ValueError: n_head is less than 1 or does not divide n_embd.
    """

    def __init__(
        self,
        n_embd: int = 768,
        n_head: int = 12,
        dropout: float = 0.0,
        causal: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if n_head < 1 or n_embd % n_head != 0:
            raise ValueError(f"n_head must be at least 1 and divide n_embd={n_embd}, not {n_head}")
        self.n_embd = n_embd
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.causal = causal
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Apply multi-head attention to each sequence.

        Args:
            x: embeddings, shape (B, T, C).

        Returns:
            New embeddings, shape (B, T, C).
        """
        q, k, v = (split_heads(part, self.n_head) for part in self.c_attn(x).chunk(3, dim=-1))
        weights = self.attn_dropout(attention_weights(q, k, self.causal))  # (B, n_head, T, T)
        return self.resid_dropout(self.c_proj(merge_heads(weights @ v)))  # (B, T, C)
