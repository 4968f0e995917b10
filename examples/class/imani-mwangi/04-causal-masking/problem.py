"""Problem 04: causal masking, so that no position sees what comes after it.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch
from torch import Tensor, nn


def causal_mask(seq_len: int, device: torch.device | str | None = None) -> Tensor:
    """Return which positions each position may attend to: itself and those before it.

    Args:
        seq_len: how many positions there are, at least 1.
        device: where the mask is made; None means torch's default device.

    Returns:
        A bool tensor, shape (seq_len, seq_len): entry (i, j) is True where position i may attend
        to position j, that is where j <= i.
    """
    # TODO: make the mask.
    raise NotImplementedError


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Turn scores into weights, with the weight 0 wherever the mask is False.

    Args:
        scores: numbers of any size, shape (..., n, m).
        mask: bool, True where attention is allowed. It has at most as many dimensions as scores
            and broadcasts to their shape. Every row has at least one True.

    Returns:
        Weights, of the shape and dtype of scores. Masked entries are exactly 0, the others of a
        row sum to 1. Gradients are finite, whatever the masked scores are.
    """
    # TODO: a softmax along the last dimension in which masked scores don't take part.
    raise NotImplementedError


class CausalAttention(nn.Module):
    """Scaled self-attention in which each position attends to itself and to those before it.

    Attributes:
        query: nn.Linear(n_embd, n_embd, bias=bias).
        key: nn.Linear(n_embd, n_embd, bias=bias).
        value: nn.Linear(n_embd, n_embd, bias=bias).
        mask: a buffer, not trainable, shape (n_positions, n_positions): True or 1 where attention
            is allowed, False or 0 elsewhere.

    Args:
        n_embd: the embedding width C.
        n_positions: the length of the longest sequence.
        bias: whether the three layers have a bias.
    """

    def __init__(self, n_embd: int = 768, n_positions: int = 1024, bias: bool = True) -> None:
        super().__init__()
        # TODO: make the three layers and register the mask.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Average, for each position, the values of itself and of the positions before it.

        Args:
            x: token embeddings, shape (B, T, C) with T <= n_positions.

        Returns:
            Shape (B, T, C), in the dtype of x.

        Raises:
            ValueError: T is greater than n_positions.
        """
        # TODO: scaled scores, masked weights, output.
        raise NotImplementedError
