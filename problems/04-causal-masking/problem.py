"""Problem 04: causal masking, so that no position attends to a later one.

Run `uv run pytest` in this folder to test what you wrote here.
"""

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
    # TODO: create the mask.
    raise NotImplementedError


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
    # TODO: a softmax along the last dimension that ignores masked scores.
    raise NotImplementedError


class CausalAttention(nn.Module):
    """Scaled self-attention in which each position attends to itself and to earlier positions.

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
        # TODO: create the three layers and register the mask.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Return, for each position, a weighted average of the values up to that position.

        Args:
            x: token embeddings, shape (B, T, C) with T <= n_positions.

        Returns:
            Weighted averages, shape (B, T, C), in the dtype of x.

        Raises:
            ValueError: T is greater than n_positions.
        """
        # TODO: scaled scores, masked weights, output.
        raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
