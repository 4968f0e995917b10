"""Replace the given parts by hand-written norms, GELU, blocks and a plain config."""

import math

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


class GPTConfig:
    def __init__(
        self,
        vocab_size=50257,
        n_positions=1024,
        n_embd=768,
        n_layer=12,
        n_head=12,
        dropout=0.0,
        bias=True,
    ):
        self.vocab_size, self.n_positions, self.n_embd = vocab_size, n_positions, n_embd
        self.n_layer, self.n_head, self.dropout, self.bias = n_layer, n_head, dropout, bias


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        x = (x - mean) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + self.eps)
        x = x * self.weight
        return x if self.bias is None else x + self.bias


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class MLP(nn.Module):
    def __init__(self, n_embd, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)

    def forward(self, x):
        return self.c_proj(gelu(self.c_fc(x)))


class CachedBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, config.bias)
        self.attn = CachedAttention(config.n_embd, config.n_head, config.bias)
        self.ln_2 = LayerNorm(config.n_embd, config.bias)
        self.mlp = MLP(config.n_embd, config.bias)

    def forward(self, x, past=None):
        attended, present = self.attn(self.ln_1(x), past)
        x = x + attended
        return x + self.mlp(self.ln_2(x)), present


class CachedGPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.n_positions, config.n_embd),
                h=nn.ModuleList([CachedBlock(config) for _ in range(config.n_layer)]),
                ln_f=LayerNorm(config.n_embd, config.bias),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, idx, past=None):
        parts, presents = self.transformer, []
        n_past = past[0][0].size(-2) if past is not None else 0
        total = n_past + idx.size(1)
        if self.config.n_positions < total:
            raise ValueError(f"{total} positions")
        where = torch.arange(total, device=idx.device)[n_past:].expand_as(idx)
        x = parts["wte"](idx) + parts["wpe"](where)
        for number in range(self.config.n_layer):
            layer_past = past[number] if past is not None else None
            x, present = parts["h"][number](x, past=layer_past)
            presents.append(list(present))
        return F.linear(parts["ln_f"](x), parts["wte"].weight), presents

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        wanted = idx.size(1) + max_new_tokens
        if wanted > self.config.n_positions:
            raise ValueError(f"{wanted} tokens")
        text = idx.clone()
        past, new = None, text
        while text.size(1) < wanted:
            logits, past = self(new, past=past)
            probabilities = torch.softmax(logits[:, -1, :], dim=-1)
            new = probabilities.topk(1, dim=-1).indices
            text = torch.cat((text, new), dim=-1)
        return text
