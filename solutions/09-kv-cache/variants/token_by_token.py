"""Process each new token separately in a loop, with a hand-written softmax."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


def kv_cache_bytes(n_layer, n_embd, seq_len, batch_size=1, bytes_per_number=2):
    return 2 * n_layer * batch_size * seq_len * n_embd * bytes_per_number


def gather(query, keys, values):
    """Return the output for one query (B, H, D) and its visible keys and values (B, H, n, D)."""
    scores = (query[:, :, None] * keys).sum(-1) / math.sqrt(keys.shape[-1])
    powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return (weights[..., None] * values).sum(2)


class CachedAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, bias=True):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x, past=None):
        q, k, v = self.c_attn(x).tensor_split(3, dim=-1)
        k = torch.stack(k.chunk(self.n_head, dim=-1), dim=1)
        v = torch.stack(v.chunk(self.n_head, dim=-1), dim=1)
        n_past = 0
        if past is not None:
            n_past = past[0].shape[2]
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        outputs = []
        for i in range(x.shape[1]):
            heads = torch.stack(q[:, i].chunk(self.n_head, dim=-1), dim=1)
            seen = n_past + i + 1
            outputs.append(gather(heads, k[:, :, :seen], v[:, :, :seen]).flatten(1))
        return self.c_proj(torch.stack(outputs, dim=1)), (k, v)


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
