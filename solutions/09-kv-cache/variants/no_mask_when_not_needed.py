"""Use is_causal for the prompt, no mask for one token, and a mask for several new tokens."""

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
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (each.view(B, t, self.n_head, -1).transpose(1, 2) for each in (q, k, v))
        if past is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
            mask = None
            if t > 1:
                n = past[0].shape[2]
                seen = torch.ones(t, n, dtype=torch.bool, device=x.device)
                new = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
                mask = torch.cat([seen, new], dim=1)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y.transpose(1, 2).contiguous().view(B, t, C)
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

    @torch.inference_mode()
    def generate(self, idx, max_new_tokens):
        if idx.size(1) + max_new_tokens > self.config.n_positions:
            raise ValueError("prompt and new tokens are more than n_positions")
        x, past = idx, None
        for _ in range(max_new_tokens):
            logits, past = self(x, past)
            x = logits[:, -1, :].argmax(dim=-1, keepdim=True)
            idx = torch.cat([idx, x], dim=1)
        return idx
