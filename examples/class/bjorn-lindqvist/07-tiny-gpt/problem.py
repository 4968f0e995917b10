import math  # noqa: F401  (you will need it)
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Given: the sizes of a model, and a block with all that is in it. You wrote one like it in problems
# 05 and 06; this one is made of PyTorch's own functions. You may put yours in its place.


@dataclass
class GPTConfig:
    """The sizes of a model; the defaults are those of the smallest GPT-2.

    Attributes:
        vocab_size: the number of different tokens.
        n_positions: the longest sequence that the model can read at once.
        n_embd: the embedding width C.
        n_layer: the number of blocks.
        n_head: the number of heads in each block.
        dropout: the share that is dropped in training.
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
    """Problem 05's attention, causal, by PyTorch's own function."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Let each token attend to itself and to earlier ones: (B, T, C) -> (B, T, C)."""
        heads = self.c_attn(x).unflatten(-1, (3, self.n_head, -1))  # (B, T, 3, n_head, head_dim)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_dim)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    """Problem 06's small network, which works on every token by itself."""

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Let every token think: (B, T, C) -> (B, T, C)."""
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    """Problem 06's block: attention, then the small network, each added to what came in."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


# What is left to write


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        C = config.n_embd
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config.vocab_size, C),
            "wpe": nn.Embedding(config.n_positions, C),
            "drop": nn.Dropout(config.dropout),
            "h": nn.ModuleList([
                Block(C, config.n_head, config.dropout, config.bias)
                for _ in range(config.n_layer)
            ]),
            "ln_f": nn.LayerNorm(C, bias=config.bias),
        })
        self.lm_head = nn.Linear(C, config.vocab_size, bias=False)
        self.transformer["wte"].weight = self.lm_head.weight
        self.apply(self.init_weights)
        # todo: c_proj

    def init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.0, 0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        B, T = idx.shape
        if T > self.config.n_positions:
            raise ValueError("too long")
        tok = self.transformer["wte"](idx)
        pos = self.transformer["wpe"](torch.arange(T, device=idx.device))
        x = self.transformer["drop"](tok + pos)
        for block in self.transformer["h"]:
            x = block(x)
        logits = torch.einsum("btc,vc->btv", self.transformer["ln_f"](x), self.lm_head.weight)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.reshape(B * T, -1), targets.reshape(B * T))
        return logits, loss

    def generate(self, idx, max_new_tokens):
        # TODO: add one token after the other, without dropout.
        raise NotImplementedError


def get_batch(data, n_positions, batch_size, generator=None):
    n = len(data) - n_positions
    if n <= 0:
        raise ValueError("too short")
    starts = torch.randint(0, n, (batch_size,), generator=generator).tolist()
    x = torch.stack([data[i : i + n_positions] for i in starts])
    y = torch.stack([data[i + 1 : i + n_positions + 1] for i in starts])
    return x, y


def bigram_loss(data, vocab_size):
    # TODO: count the pairs, and take the mean of minus the logarithm of their shares.
    raise NotImplementedError
