"""Problem 09: a KV cache, with which a GPT reads each token once.

Run `uv run pytest` in this folder to test what you wrote here.
"""

from dataclasses import dataclass

import torch  # noqa: F401  (you will need it)
import torch.nn.functional as F
from torch import Tensor, nn

KeysAndValues = tuple[Tensor, Tensor]
"""Keys and values of some tokens, each of shape (B, n_head, length, head_dim)."""


def kv_cache_bytes(
    n_layer: int, n_embd: int, seq_len: int, batch_size: int = 1, bytes_per_number: int = 2
) -> int:
    """Return how much memory the keys and values of all layers take.

    Args:
        n_layer: the number of layers.
        n_embd: the embedding width C, which is the width of all heads together.
        seq_len: the number of tokens in each sequence.
        batch_size: the number of sequences.
        bytes_per_number: 2 for half precision, 4 for float32.

    Returns:
        The number of bytes.
    """
    # TODO: how many entries are kept, and how many bytes has each?
    raise NotImplementedError


class CachedAttention(nn.Module):
    """Causal self-attention without dropout. New tokens also attend to the tokens in `past`.

    Args:
        n_embd: the embedding width C.
        n_head: the number of heads; it divides n_embd.
        bias: whether the linear layers have a bias.

    Attributes:
        c_attn: nn.Linear, n_embd -> 3 * n_embd, computes the queries, keys and values, in this
            order.
        c_proj: nn.Linear, n_embd -> n_embd, mixes the outputs of the heads.
    """

    def __init__(self, n_embd: int = 768, n_head: int = 12, bias: bool = True) -> None:
        super().__init__()
        # TODO: make the two layers listed above.
        raise NotImplementedError

    def forward(self, x: Tensor, past: KeysAndValues | None = None) -> tuple[Tensor, KeysAndValues]:
        """Let each new token attend to the past, to itself and to the new tokens before it.

        Args:
            x: embeddings of the new tokens, shape (B, t, C).
            past: the keys and the values of all earlier tokens, each of shape
                (B, n_head, length, head_dim); None if there are no such tokens. Don't change it.

        Returns:
            The new embeddings, shape (B, t, C), and the present: keys and values of past and new
            tokens together, each of shape (B, n_head, length + t, head_dim).
        """
        # TODO: causal attention in every head, over past and new tokens.
        raise NotImplementedError


@dataclass
class GPTConfig:
    """The sizes of a GPT, under GPT-2's names. Given.

    Attributes:
        vocab_size: the number of different tokens.
        n_positions: the largest number of tokens in a sequence.
        n_embd: the embedding width C.
        n_layer: the number of blocks.
        n_head: the number of heads in each attention; it divides n_embd.
        dropout: not used here, as a cache is for writing text, not for training.
        bias: whether the linear layers (except lm_head) and the layer norms have a bias.
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class MLP(nn.Module):
    """The feed-forward network of a block. Given, with PyTorch's GELU."""

    def __init__(self, n_embd: int, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the new embedding of each token, (B, t, C)."""
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    """A transformer block with a cache in its attention. Given, with PyTorch's LayerNorm."""

    def __init__(self, n_embd: int, n_head: int, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CachedAttention(n_embd, n_head, bias=bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, bias)

    def forward(self, x: Tensor, past: KeysAndValues | None = None) -> tuple[Tensor, KeysAndValues]:
        """Return the new x, (B, t, C), and the present of the attention."""
        y, present = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class CachedGPT(nn.Module):
    """A GPT that continues where an earlier call ended. The parts are given; see problem 07.

    Args:
        config: the sizes of the model.

    Attributes:
        config: the argument config.
        transformer: the embeddings wte and wpe, the blocks h, and the last layer norm ln_f.
        lm_head: nn.Linear without a bias, from embeddings to logits; it shares the weight of wte.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        blocks = [Block(config.n_embd, config.n_head, config.bias) for _ in range(config.n_layer)]
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.n_positions, config.n_embd),
                "h": nn.ModuleList(blocks),
                "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(
        self, idx: Tensor, past: list[KeysAndValues] | None = None
    ) -> tuple[Tensor, list[KeysAndValues]]:
        """Return the logits of the next token after each new token, and the present.

        Args:
            idx: the new tokens, int64, shape (B, t).
            past: the present that an earlier call returned: keys and values of each layer, for all
                tokens before idx; None if there are no such tokens. Don't change it.

        Returns:
            The logits, shape (B, t, vocab_size), and the present: a list with the keys and values
            of each layer, for past and new tokens together.

        Raises:
            ValueError: there are more than n_positions past and new tokens in all.
        """
        # TODO: embed at the right positions, go through the blocks, collect their presents.
        raise NotImplementedError

    def generate(self, idx: Tensor, max_new_tokens: int) -> Tensor:
        """Continue each sequence with the most probable token, again and again.

        The model reads the prompt once, and then one token at a time.

        Args:
            idx: the prompts, int64, shape (B, T), with T at least 1.
            max_new_tokens: the number of tokens to add; for 0, the prompts are returned.

        Returns:
            Prompts and new tokens, int64, shape (B, T + max_new_tokens).

        Raises:
            ValueError: T + max_new_tokens is more than n_positions. It is raised before anything
                is computed.
        """
        # TODO: raise ValueError if it is too long; read the prompt once, then one token at a time.
        raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
