"""A small language model as students write it: a config, modules of modules, a cache.

The tests open this file behind the boundary, and load it in process to compare with.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class GPTConfig:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        x = centred / (centred.square().mean(-1, keepdim=True) + self.eps).sqrt() * self.weight
        return x if self.bias is None else x + self.bias


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)

    def forward(self, x, past=None):
        q, k, v = (
            t.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for t in self.c_attn(x).chunk(3, dim=-1)
        )
        if past is not None:
            k, v = torch.cat([past[0], k], dim=-2), torch.cat([past[1], v], dim=-2)
        n, m = q.shape[-2], k.shape[-2]
        mask = torch.ones(n, m, dtype=torch.bool).tril(m - n)
        scores = (q @ k.mT / math.sqrt(k.shape[-1])).masked_fill(~mask, -math.inf)
        y = scores.softmax(-1) @ v
        return self.c_proj(y.transpose(1, 2).flatten(-2)), (k, v)


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(F.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, config.bias)
        self.attn = Attention(config)
        self.ln_2 = LayerNorm(config.n_embd, config.bias)
        self.mlp = MLP(config)

    def forward(self, x, past=None):
        y, present = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = LayerNorm(config.n_embd, config.bias)


class GPT(nn.Module):
    tied = True

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = self.body(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        if self.tied:
            self.lm_head.weight = self.transformer.wte.weight

    def body(self, config):
        return Body(config)

    @property
    def n_parameters(self):
        return sum(p.numel() for p in self.parameters())

    def logits(self, idx, past=None):
        if idx.shape[1] > self.config.n_positions:
            raise ValueError("the sequence is too long")
        past = past or [None] * len(self.transformer.h)
        start = 0 if past[0] is None else past[0][0].shape[-2]
        positions = torch.arange(start, start + idx.shape[1])
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(positions))
        present = []
        for block, kept in zip(self.transformer.h, past, strict=True):
            x, kept = block(x, kept)
            present.append(kept)
        return self.lm_head(self.transformer.ln_f(x)), present

    def forward(self, idx, targets=None):
        logits, _ = self.logits(idx)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        was_training = self.training
        self.eval()
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.config.n_positions :])
            idx = torch.cat([idx, logits[:, -1:].argmax(-1)], dim=1)
        self.train(was_training)
        return idx


class UntiedGPT(GPT):
    tied = False


class DictGPT(GPT):
    def body(self, config):
        return nn.ModuleDict(dict(Body(config).named_children()))


class CachedGPT(GPT):
    def forward(self, idx, past=None):
        return self.logits(idx, past)
