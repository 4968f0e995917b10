"""Store keys and values in one tensor. The last step of generate also reads its token."""

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
        qkv = self.c_attn(x).view(B, t, 3, self.n_head, self.head_dim).permute(2, 0, 3, 1, 4)
        q, kv = qkv[0], qkv[1:]
        if past is not None:
            kv = torch.cat([torch.stack(tuple(past)), kv], dim=3)
        n = kv.size(3)
        mask = torch.arange(n, device=x.device) <= torch.arange(n - t, n, device=x.device)[:, None]
        y = F.scaled_dot_product_attention(q, kv[0], kv[1], attn_mask=mask)
        return self.c_proj(y.permute(0, 2, 1, 3).reshape(B, t, C)), (kv[0], kv[1])


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
        B, T = idx.shape
        if T + max_new_tokens > self.config.n_positions:
            raise ValueError(f"{T} + {max_new_tokens} > {self.config.n_positions}")
        self.eval()
        tokens = [idx]
        logits, past = self.forward(idx)
        for _ in range(max_new_tokens):
            tokens.append(torch.argmax(logits[:, -1, :], dim=-1).unsqueeze(1))
            logits, past = self.forward(tokens[-1], past)
        return torch.cat(tokens, dim=1)
