"""Problem 02: attention, where every position takes a weighted average of all values.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch  # noqa: F401  (you will need it)
from torch import Tensor, nn


class SimpleAttention(nn.Module):
    """Self-attention with one head, without scaling and without a mask.

    Write it yourself: torch's scaled_dot_product_attention, multi_head_attention_forward and
    MultiheadAttention may not be called. torch.softmax may.

    Args:
        n_embd: the embedding width C, of what comes in and of what comes out.
        bias: whether the three layers have a bias.

    Attributes:
        query, key, value: the layers, each an nn.Linear from n_embd to n_embd.
    """

    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        # TODO: make the three layers.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Let every position of a sequence attend to all positions of that sequence.

        Args:
            x: embeddings, shape (B, T, C), of any float dtype that the layers have too.

        Returns:
            softmax(q kᵀ) v, shape (B, T, C), in the dtype of x: row t is the average of all
            values, weighted by how well their keys answer the query of position t.
        """
        # TODO: make queries, keys and values; then scores, weights and the weighted average.
        raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
