"""Problem 05: multi-head attention, several attentions side by side, as in GPT-2.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch  # noqa: F401  (you will need it)
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
    # TODO: cut each token's embedding into n_head slices, one per head.
    raise NotImplementedError


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads' slices of each token side by side again: the inverse of split_heads.

    Args:
        x: one matrix per head, shape (B, n_head, T, head_dim).

    Returns:
        Embeddings, shape (B, T, n_head * head_dim).
    """
    # TODO: undo split_heads.
    raise NotImplementedError


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each on its own slice of the embedding, as in GPT-2.

    PyTorch's own attention (scaled_dot_product_attention, multi_head_attention_forward,
    MultiheadAttention) may not be called; torch.softmax may.

    Args:
        n_embd: the embedding width C.
        n_head: the number of heads.
        dropout: the rate at which weights and output entries are dropped in training; below 1.
        causal: whether a token attends only to itself and to earlier tokens.
        bias: whether the linear layers have a bias.

    Attributes:
        n_embd: the argument n_embd.
        n_head: the argument n_head.
        head_dim: the width of each head.
        c_attn: nn.Linear, n_embd -> 3 * n_embd, computes the queries, keys and values, in this
            order.
        c_proj: nn.Linear, n_embd -> n_embd, mixes the outputs of the heads.
        attn_dropout: nn.Dropout, for the attention weights.
        resid_dropout: nn.Dropout, for the output.

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
        # TODO: raise ValueError if n_head is impossible, then make the attributes listed above.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Apply multi-head attention to each sequence.

        Args:
            x: embeddings, shape (B, T, C), with T of any length.

        Returns:
            New embeddings, shape (B, T, C).
        """
        # TODO: scaled attention in every head, with a mask if causal; then merge, project, drop.
        raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
