"""Use as few lines as possible."""

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


gelu = lambda x: x / 2 * (1 + (math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)).tanh())  # noqa: E731


class LayerNorm(nn.Module):
    def __init__(s, n_embd, bias=True, eps=1e-5):  # noqa: N805
        super().__init__()
        s.weight, s.e = nn.Parameter(torch.ones(n_embd)), eps
        s.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None

    def forward(s, x):  # noqa: N805
        v, m = torch.var_mean(x, -1, unbiased=False, keepdim=True)
        y = s.weight * (x - m) / (v + s.e).sqrt()
        return y + s.bias if s.bias is not None else y


class MLP(nn.Module):
    def __init__(s, n_embd, dropout=0.0, bias=True):  # noqa: N805
        super().__init__()
        s.c_fc, s.c_proj = nn.Linear(n_embd, 4 * n_embd, bias), nn.Linear(4 * n_embd, n_embd, bias)
        s.dropout = nn.Dropout(dropout)

    def forward(s, x):  # noqa: N805
        return s.dropout(s.c_proj(gelu(s.c_fc(x))))


class Block(nn.Module):
    def __init__(s, n_embd=768, n_head=12, dropout=0.0, bias=True):  # noqa: N805
        super().__init__()
        s.ln_1, s.ln_2 = (LayerNorm(n_embd, bias) for _ in "12")
        s.attn, s.mlp = (
            CausalSelfAttention(n_embd, n_head, dropout, bias),
            MLP(n_embd, dropout, bias),
        )  # noqa: E501

    def forward(s, x):  # noqa: N805
        return (y := x + s.attn(s.ln_1(x))) + s.mlp(s.ln_2(y))
