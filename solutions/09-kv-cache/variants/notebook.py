"""Use short code, as in a notebook."""

import torch as t, torch.nn as nn, torch.nn.functional as F
from dataclasses import dataclass

kv_cache_bytes = lambda n_layer, n_embd, seq_len, batch_size=1, bytes_per_number=2: (
    n_layer * n_embd * seq_len * batch_size * bytes_per_number * 2
)


class CachedAttention(nn.Module):
    def __init__(s, n_embd=768, n_head=12, bias=True):
        super().__init__()
        s.h = n_head
        s.c_attn, s.c_proj = nn.Linear(n_embd, 3 * n_embd, bias), nn.Linear(n_embd, n_embd, bias)

    def forward(s, x, past=None):
        q, k, v = [a.unflatten(-1, (s.h, -1)).transpose(1, 2) for a in s.c_attn(x).chunk(3, -1)]
        if past is not None:
            k, v = [t.cat(p, -2) for p in zip(past, (k, v))]
        n, m = q.shape[-2], k.shape[-2]
        a = q @ k.mT * q.shape[-1] ** -0.5
        a = a.where(t.ones_like(a).tril(m - n) > 0, -t.inf).softmax(-1)
        return s.c_proj((a @ v).transpose(1, 2).flatten(-2)), (k, v)


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

    def forward(s, idx, past=None):
        p = 0 if past is None else past[0][0].shape[2]
        n = p + idx.shape[1]
        if n > s.config.n_positions:
            raise ValueError(n)
        g, c = s.transformer, []
        x = g.wte(idx) + g.wpe(t.arange(p, n))
        for i, b in enumerate(g.h):
            x, kv = b(x, past and past[i])
            c.append(kv)
        return s.lm_head(g.ln_f(x)), c

    def generate(s, idx, max_new_tokens):
        if idx.shape[1] + max_new_tokens > s.config.n_positions:
            raise ValueError
        x, p = idx, None
        for _ in range(max_new_tokens):
            y, p = s(x, p)
            x = y[:, -1:].argmax(-1)
            idx = t.cat([idx, x], 1)
        return idx
