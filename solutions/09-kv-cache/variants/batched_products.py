"""Join the heads to the batch for baddbmm, and store a table of positions as a buffer."""

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
        self.register_buffer("mask", torch.tril(torch.ones(256, 256)).bool(), persistent=False)

    def mask_for(self, n, m, device):
        if m > self.mask.size(0):
            return torch.ones(n, m, dtype=torch.bool, device=device).tril(m - n)
        return self.mask[m - n : m, :m]

    def forward(self, x, past=None):
        B, t, C = x.shape
        q, k, v = F.linear(x, self.c_attn.weight, self.c_attn.bias).split(C, -1)
        q, k, v = [
            each.reshape(B, t, self.n_head, self.head_dim).permute(0, 2, 1, 3) for each in (q, k, v)
        ]
        if past is not None:
            k = torch.concat([past[0], k], dim=-2)
            v = torch.concat([past[1], v], dim=-2)
        m = k.shape[2]
        mask = torch.zeros(t, m, dtype=x.dtype, device=x.device)
        mask = mask.masked_fill(~self.mask_for(t, m, x.device), -1e9)
        merged = B * self.n_head
        scores = torch.baddbmm(
            mask.expand(merged, t, m),
            q.reshape(merged, t, self.head_dim),
            k.reshape(merged, m, self.head_dim).transpose(1, 2),
            alpha=1 / math.sqrt(self.head_dim),
        )
        y = torch.bmm(F.softmax(scores, dim=-1), v.reshape(merged, m, self.head_dim))
        y = y.view(B, self.n_head, t, self.head_dim).permute(0, 2, 1, 3).reshape(B, t, C)
        return F.linear(y, self.c_proj.weight, self.c_proj.bias), (k, v)


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
