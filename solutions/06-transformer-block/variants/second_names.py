"""Give layers a second name, and the argument of forward a different name."""

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
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n_embd))
        if bias:
            self.bias = nn.Parameter(torch.zeros(n_embd))
        else:
            self.bias = None
        self.gain = self.weight

    def forward(self, tokens):
        mean = tokens.mean(dim=-1, keepdim=True)
        var = tokens.var(dim=-1, unbiased=False, keepdim=True)
        out = (tokens - mean) / torch.sqrt(var + self.eps) * self.gain
        return out if self.bias is None else out + self.bias


class NewGELU(nn.Module):
    def forward(self, hidden):
        return gelu(hidden)


class MLP(nn.Module):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.net = nn.Sequential(self.c_fc, NewGELU(), self.c_proj, self.dropout)

    def forward(self, tokens):
        return self.net(tokens)


class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.ln_1 = LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout=dropout, bias=bias)
        self.ln_2 = LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout=dropout, bias=bias)
        first, second = (self.ln_1, self.attn), (self.ln_2, self.mlp)
        self.halves = nn.ModuleList(nn.Sequential(*half) for half in (first, second))

    def forward(self, tokens):
        for half in self.halves:
            tokens = tokens + half(tokens)
        return tokens
