"""Problem 04, reference solution."""

import math

import torch
from torch import Tensor, nn


def causal_mask(seq_len: int, device: torch.device | str | None = None) -> Tensor:
    """Return the causal mask: each position may attend to itself and to earlier positions.

    Args:
        seq_len: the number of positions, at least 1.
        device: the device of the mask; None means torch's default device.

    Returns:
        A bool tensor, shape (seq_len, seq_len): entry (i, j) is True where position i may attend
        to position j, that is, where j <= i.
    """
    return torch.ones(seq_len, seq_len, dtype=torch.bool, device=device).tril()


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Turn scores into weights, with the weight 0 wherever the mask is False.

    Args:
        scores: numbers of any magnitude, shape (..., n, m).
        mask: bool, True where attention is allowed. It has at most as many dimensions as scores
            and broadcasts to their shape. Every row has at least one True.

    Returns:
        Weights, with the shape and dtype of scores. Masked weights are exactly 0, and the weights
        of each row sum to 1. Gradients are finite for any masked scores.
    """
    # -inf is below every score, so its weight is always 0. A number such as -1e9 would get the
    # weight if all allowed scores were lower.
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)


class CausalAttention(nn.Module):
    """Scaled self-attention in which each position attends to itself and to earlier positions.

    Attributes:
        query: nn.Linear(n_embd, n_embd, bias=bias).
        key: nn.Linear(n_embd, n_embd, bias=bias).
        value: nn.Linear(n_embd, n_embd, bias=bias).
        mask: a buffer, not trainable, bool, shape (n_positions, n_positions).

    Args:
        n_embd: the embedding width C.
        n_positions: the length of the longest sequence.
        bias: whether the three layers have a bias.
    """

    def __init__(self, n_embd: int = 768, n_positions: int = 1024, bias: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        # A buffer moves to the GPU with the module and is not trained. The mask can be computed
        # again, so it is not saved.
        self.register_buffer("mask", causal_mask(n_positions), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return, for each position, a weighted average of the values up to that position.

        Args:
            x: token embeddings, shape (B, T, C) with T <= n_positions.

        Returns:
            Weighted averages, shape (B, T, C), in the dtype of x.

        Raises:
            ValueError: T is greater than n_positions.
        """
        B, T, C = x.shape  # noqa: N806  (the paper's letters)
        n_positions = self.mask.shape[-1]
        if n_positions < T:
            raise ValueError(f"a sequence of {T} tokens, but there are {n_positions} positions")
        q, k, v = self.query(x), self.key(x), self.value(x)  # each (B, T, C)
        scores = q @ k.mT / math.sqrt(C)  # (B, T, T)
        weights = masked_softmax(scores, self.mask[:T, :T])  # (B, T, T)
        return weights @ v  # (B, T, C)
