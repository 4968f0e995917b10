"""Compute scores for past and new tokens separately, and join them before the softmax."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


def kv_cache_bytes(n_layer, n_embd, seq_len, batch_size=1, bytes_per_number=2):
    return 2 * n_layer * batch_size * seq_len * n_embd * bytes_per_number


class CachedAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, bias=True):
        super().__init__()
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x, past=None):
        B, t, C = x.shape
        q, k, v = self.c_attn(x).view(B, t, 3 * self.n_head, -1).transpose(1, 2).chunk(3, dim=1)
        q = q / math.sqrt(self.head_dim)
        future = torch.full((t, t), -math.inf, dtype=x.dtype, device=x.device).triu(1)
        scores = q @ k.mT + future
        if past is None:
            return self.project(scores.softmax(-1) @ v), (k, v)
        past_k, past_v = past
        n = past_k.shape[-2]
        weights = torch.cat([q @ past_k.mT, scores], dim=-1).softmax(-1)
        y = weights[..., :n] @ past_v + weights[..., n:] @ v
        return self.project(y), (torch.cat([past_k, k], -2), torch.cat([past_v, v], -2))

    def project(self, y):
        return self.c_proj(y.transpose(1, 2).flatten(2))


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
        B, t = idx.shape
        if past is None:
            past = [None] * self.config.n_layer
            n_past = 0
        else:
            n_past = past[0][0].size(2)
        if n_past + t > self.config.n_positions:
            raise ValueError(f"{n_past + t} tokens are more than {self.config.n_positions}")

        pos = torch.arange(n_past, n_past + t, device=idx.device)
        x = self.transformer["wte"](idx) + self.transformer["wpe"](pos)
        presents = []
        for block, layer_past in zip(self.transformer["h"], past):
            x, present = block(x, layer_past)
            presents.append(present)
        x = self.transformer["ln_f"](x)
        return self.lm_head(x), presents

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        if idx.size(1) + max_new_tokens > self.config.n_positions:
            raise ValueError("prompt and new tokens are more than n_positions")
        x, past = idx, None
        for _ in range(max_new_tokens):
            logits, past = self(x, past)
            x = logits[:, -1, :].argmax(dim=-1, keepdim=True)
            idx = torch.cat([idx, x], dim=1)
        return idx
