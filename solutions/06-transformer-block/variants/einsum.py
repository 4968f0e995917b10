"""Use einsum for means and for a hand-written attention."""

import math

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, dropout=0.0, bias=True):
        super().__init__()
        assert n_embd % n_head == 0
        self.n_head = n_head
        self.scale = (n_embd // n_head) ** -0.5
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.c_attn(x).reshape(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.unbind(2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k) * self.scale
        hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = self.attn_dropout(scores.masked_fill(hidden, -math.inf).softmax(-1))
        y = torch.einsum("bhij,bjhd->bihd", weights, v).reshape(B, T, C)
        return self.resid_dropout(self.c_proj(y))


def gelu(x):
    cubed = torch.einsum("...,...,...->...", x, x, x)
    return 0.5 * x + 0.5 * x * torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * cubed))


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None

    def forward(self, x):
        n = x.shape[-1]
        centred = x - (torch.einsum("...c->...", x) / n)[..., None]
        variance = torch.einsum("...c,...c->...", centred, centred) / n
        out = torch.einsum("...c,...,c->...c", centred, (variance + self.eps) ** -0.5, self.weight)
        return out if self.bias is None else out + self.bias


class MLP(nn.Module):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)

    def forward(self, x):
        hidden = torch.einsum("btc,hc->bth", x, self.c_fc.weight)
        hidden = hidden if self.c_fc.bias is None else hidden + self.c_fc.bias
        out = torch.einsum("bth,ch->btc", gelu(hidden), self.c_proj.weight)
        out = out if self.c_proj.bias is None else out + self.c_proj.bias
        return self.dropout(out)


class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.mlp = MLP(n_embd, dropout, bias)
        self.ln_2 = LayerNorm(n_embd, bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_1 = LayerNorm(n_embd, bias)

    def forward(self, x):
        x = self.attn(self.ln_1(x)) + x
        return self.mlp(self.ln_2(x)) + x
