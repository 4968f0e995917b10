"""Derive LayerNorm from torch's LayerNorm, with a hand-written forward."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


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


def gelu(x: torch.Tensor) -> torch.Tensor:
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return x * (torch.tanh(inner) + 1.0) / 2.0


class LayerNorm(nn.LayerNorm):
    def __init__(self, n_embd: int, bias: bool = True, eps: float = 1e-5):
        super().__init__(n_embd, eps=eps, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mu = x.mean(-1, keepdim=True)
        sigma2 = ((x - mu) ** 2).mean(-1, keepdim=True)
        y = (x - mu) / (sigma2 + self.eps) ** 0.5
        y = y * self.weight
        return y if self.bias is None else y + self.bias


class MLP(nn.Module):
    expansion = 4

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        hidden = self.expansion * n_embd
        self.c_fc = nn.Linear(n_embd, hidden, bias)
        self.act = gelu
        self.c_proj = nn.Linear(hidden, n_embd, bias)
        self.dropout = nn.Dropout(p=dropout, inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


class Residual(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float, bias: bool):
        super().__init__()
        self.ln_1, self.ln_2 = LayerNorm(n_embd, bias), LayerNorm(n_embd, bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.mlp = MLP(n_embd, dropout, bias)


class Block(Residual):
    def __init__(
        self, n_embd: int = 768, n_head: int = 12, dropout: float = 0.0, bias: bool = True
    ):
        super().__init__(n_embd, n_head, dropout, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        after_attention = self.attn(self.ln_1(x)).add(x)
        return self.mlp(self.ln_2(after_attention)).add(after_attention)
