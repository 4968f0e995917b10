"""Problem 07: a tiny GPT, a language model that learns to write.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import math  # noqa: F401  (you will need it)
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Given: the sizes of a model, and a block with its parts. You wrote such a block in problems 05 and
# 06; this one uses PyTorch's functions. You may replace it by yours.


@dataclass
class GPTConfig:
    """The sizes of a model; the defaults are those of the smallest GPT-2.

    Attributes:
        vocab_size: the number of different tokens.
        n_positions: the longest sequence that the model can read at once.
        n_embd: the embedding width C.
        n_layer: the number of blocks.
        n_head: the number of heads in each block.
        dropout: the rate at which entries are dropped in training.
        bias: whether the blocks' linear layers and all layer norms have a bias.
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class CausalSelfAttention(nn.Module):
    """The attention of problem 05, computed by PyTorch's own function."""

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        *,
        dropout: float = 0.0,
        causal: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.causal = causal
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Let each token attend to itself and to earlier tokens: (B, T, C) -> (B, T, C)."""
        heads = self.c_attn(x).unflatten(-1, (3, self.n_head, -1))  # (B, T, 3, n_head, head_dim)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_dim)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=dropout)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    """The feed-forward network of problem 06, applied to each token separately."""

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to each token: (B, T, C) -> (B, T, C)."""
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    """The block of problem 06: attention, then the MLP, each added to its input."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout=dropout, causal=True, bias=bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply both parts: (B, T, C) -> (B, T, C)."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


# To write


class GPT(nn.Module):
    """A language model, which computes the logits of the next token.

    nn.MultiheadAttention, nn.Transformer and its layers may not be used.

    Args:
        config: the sizes of the model.

    Attributes:
        config: the argument config.
        transformer: nn.ModuleDict with
            wte: nn.Embedding, vocab_size -> n_embd, a row for each token;
            wpe: nn.Embedding, n_positions -> n_embd, a row for each position;
            drop: nn.Dropout;
            h: nn.ModuleList of n_layer Blocks;
            ln_f: nn.LayerNorm, the last norm.
        lm_head: nn.Linear, n_embd -> vocab_size, without bias; it shares the weight of wte.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        # TODO: make the parts listed above, tie the weight, and set the initial weights.
        raise NotImplementedError

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return the logits of the next token at every position, and the loss.

        Args:
            idx: tokens, int64, shape (B, T).
            targets: the tokens that come next, int64, shape (B, T); a target of -100 doesn't count.

        Returns:
            Logits, shape (B, T, vocab_size), and the mean cross entropy, or None without targets.

        Raises:
            ValueError: T is more than n_positions.
        """
        # TODO: embed tokens and positions, go through the blocks, and compare with the targets.
        raise NotImplementedError

    def generate(self, idx: Tensor, max_new_tokens: int) -> Tensor:
        """Continue each sequence with the most probable token, again and again.

        Args:
            idx: prompts, int64, shape (B, T); T may be more than n_positions.
            max_new_tokens: the number of tokens to add.

        Returns:
            Prompts and new tokens, int64, shape (B, T + max_new_tokens).
        """
        # TODO: add one token after the other, without dropout.
        raise NotImplementedError


def get_batch(
    data: Tensor, n_positions: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Draw random pieces of a text, and the pieces that start one token later.

    Args:
        data: the tokens of a text, int64, shape (N,).
        n_positions: the length of each piece.
        batch_size: the number of pieces.
        generator: the source of all random numbers; None means torch's global generator.

    Returns:
        x and y, each int64, shape (batch_size, n_positions): y[b, t] is the token after x[b, t].

    Raises:
        ValueError: the text is too short for one piece and the token after it.
    """
    # TODO: draw where the pieces start, and cut them out.
    raise NotImplementedError


def bigram_loss(data: Tensor, vocab_size: int) -> float:
    """Return the mean cross entropy of the best model that sees only the previous token.

    Args:
        data: the tokens of a text, int64, shape (N,).
        vocab_size: the number of different tokens.

    Returns:
        The mean over all tokens except the first, in nats.
    """
    # TODO: count the pairs of neighbours, and take the mean of minus the logarithm of their shares.
    raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
