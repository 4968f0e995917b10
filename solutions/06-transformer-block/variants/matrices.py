"""Subtract the mean with a matrix, and correct torch's unbiased variance."""

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
    t = torch.tanh(
        torch.tensor(2 / math.pi, dtype=x.dtype).sqrt() * torch.addcmul(x, x * x, x, value=0.044715)
    )
    return torch.lerp(torch.zeros_like(x), x, (t + 1) / 2)


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None
        self.register_buffer("centring", torch.eye(n_embd) - 1 / n_embd, persistent=False)

    def centre(self, x):
        n = x.shape[-1]
        return x @ (torch.eye(n, dtype=x.dtype) - torch.full((n, n), 1 / n, dtype=x.dtype))

    def forward(self, x):
        n, centred = x.shape[-1], self.centre(x)
        variance = centred.var(-1, keepdim=True) * (n - 1) / n if n > 1 else 0 * x
        y = centred * torch.pow(variance + self.eps, -0.5)
        y = y @ torch.diag(self.weight)
        return y if self.bias is None else y + self.bias


class MLP(nn.Module):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = x @ self.c_fc.weight.T
        if self.c_fc.bias is not None:
            hidden = hidden + self.c_fc.bias
        y = gelu(hidden) @ self.c_proj.weight.T
        if self.c_proj.bias is not None:
            y = y + self.c_proj.bias
        return self.dropout(y)


class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.ln_1 = LayerNorm(n_embd, bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = LayerNorm(n_embd, bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))
