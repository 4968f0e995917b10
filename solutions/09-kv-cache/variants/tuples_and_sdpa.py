"""Use PyTorch's attention with a bool mask, and a tuple of tuples for the past."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


def kv_cache_bytes(n_layer, n_embd, seq_len, batch_size=1, bytes_per_number=2):
    return 2 * n_layer * batch_size * seq_len * n_embd * bytes_per_number


class CachedAttention(nn.Module):
    def __init__(self, n_embd: int = 768, n_head: int = 12, bias: bool = True):
        super().__init__()
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x, past=None):
        batch, n_new, n_embd = x.shape
        qkv = self.c_attn(x).reshape(batch, n_new, 3, self.n_head, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, n_head, n_new, head_dim)
        if past is not None:
            k = torch.cat((past[0], k), -2)
            v = torch.cat((past[1], v), -2)
        n_all = k.shape[-2]
        mask = torch.ones(n_new, n_all, dtype=torch.bool, device=x.device).tril(n_all - n_new)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y.transpose(1, 2).reshape(batch, n_new, n_embd)
        return self.c_proj(y), (k, v)


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

    def generate(self, idx, max_new_tokens):
        if idx.shape[1] + max_new_tokens > self.config.n_positions:
            raise ValueError("too long")
        out = [idx]
        past = None
        for _ in range(max_new_tokens):
            with torch.no_grad():
                logits, past = self(out[-1], past)
            out.append(logits[:, -1:].argmax(-1))
        return torch.cat(out, dim=1)
