"""Derive the attention from a base class, and define a small cache class inside generate."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


def kv_cache_bytes(n_layer, n_embd, seq_len, batch_size=1, bytes_per_number=2):
    return 2 * n_layer * batch_size * seq_len * n_embd * bytes_per_number


class Heads(nn.Module):
    """The layers of an attention with several heads."""

    def __init__(self, n_embd: int, n_head: int, bias: bool) -> None:
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, n_embd * 3, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.n_head, -1)).movedim(-2, -3)

    def merge(self, x: torch.Tensor) -> torch.Tensor:
        return x.movedim(-3, -2).flatten(-2)


class CachedAttention(Heads):
    def __init__(self, n_embd: int = 768, n_head: int = 12, bias: bool = True) -> None:
        super().__init__(n_embd, n_head, bias)

    def forward(self, x, past=None):
        queries, keys, values = map(self.split, self.c_attn(x).chunk(3, dim=-1))
        old_keys, old_values = (keys[..., :0, :], values[..., :0, :]) if past is None else past
        keys, values = torch.cat([old_keys, keys], -2), torch.cat([old_values, values], -2)
        hidden = self.hidden(queries.shape[-2], keys.shape[-2]).to(x.device)
        scores = (queries @ keys.transpose(-1, -2)) / math.sqrt(queries.shape[-1])
        scores = scores.masked_fill(hidden, -torch.inf)
        scores = scores - scores.amax(dim=-1, keepdim=True)
        weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
        return self.c_proj(self.merge(weights @ values)), (keys, values)

    @staticmethod
    def hidden(n_new: int, n_all: int) -> torch.Tensor:
        """Return a mask that is True where key j comes after the new token i."""
        table = [[j > n_all - n_new + i for j in range(n_all)] for i in range(n_new)]
        return torch.tensor(table, dtype=torch.bool).view(n_new, n_all)


@dataclass
class GPTConfig:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class MLP(nn.Module):
    def __init__(self, n_embd, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, bias=True):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CachedAttention(n_embd, n_head, bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, bias)

    def forward(self, x, past=None):
        y, present = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class CachedGPT(nn.Module):
    def __init__(self, config):
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

    def forward(self, idx, past=None):
        start = past[0][0].shape[-2] if past else 0
        end = start + idx.shape[-1]
        if end > self.config.n_positions:
            raise ValueError(f"only {self.config.n_positions} positions, not {end}")
        x = self.transformer.wte(idx) + self.transformer.wpe.weight[start:end]
        present = ()
        for i, block in enumerate(self.transformer.h):
            x, kv = block(x, past[i] if past else None)
            present += (kv,)
        return self.lm_head(self.transformer.ln_f(x)), present

    @torch.no_grad()
    def generate(self, idx: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        if idx.shape[-1] + max_new_tokens > self.config.n_positions:
            raise ValueError("there are not so many positions")
        text = Text(self, idx)
        for _ in range(max_new_tokens):
            text.go_on()
        return text.tokens


class Text:
    """A growing text and its cache."""

    def __init__(self, model: CachedGPT, prompt: torch.Tensor) -> None:
        self.model, self.tokens = model, prompt
        self.unread, self.cache = prompt, None

    def go_on(self) -> None:
        logits, self.cache = self.model(self.unread, self.cache)
        self.unread = logits[:, -1].max(dim=-1, keepdim=True).indices
        self.tokens = torch.cat([self.tokens, self.unread], dim=-1)
