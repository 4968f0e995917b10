"""Compute with functions. The modules only store weights."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        thirds = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (third.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for third in thirds)
        rate = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        y = self.c_proj(y.transpose(1, 2).flatten(2))
        return F.dropout(y, self.dropout, self.training)


def gelu(x):
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))
    return x * (1 - torch.sigmoid(-2 * u))


def layer_norm(x, weight, bias, eps):
    x = x - x.mean(-1, keepdim=True)
    x = x * torch.rsqrt(torch.linalg.vector_norm(x, dim=-1, keepdim=True) ** 2 / x.shape[-1] + eps)
    return x * weight if bias is None else torch.addcmul(bias, x, weight)


def mlp(x, fc, proj):
    return F.linear(gelu(F.linear(x, *fc)), *proj)


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.full((n_embd,), 1.0))
        self.bias = nn.Parameter(torch.zeros_like(self.weight)) if bias else None
        self.eps = eps

    def forward(self, x):
        return layer_norm(x, self.weight, self.bias, self.eps)


class MLP(nn.Module):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        y = mlp(x, (self.c_fc.weight, self.c_fc.bias), (self.c_proj.weight, self.c_proj.bias))
        return F.dropout(y, self.dropout.p, training=self.training)


class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.ln_1, self.ln_2 = LayerNorm(n_embd, bias=bias), LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x):
        y = self.attn(self.ln_1(x))
        return x + y + self.mlp(self.ln_2(x + y))
