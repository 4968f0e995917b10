"""Build the MLP as an nn.Sequential with names and a GELU layer. Norms register no bias."""

import math
from collections import OrderedDict

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


class NewGELU(nn.Module):
    def forward(self, x):
        return gelu(x)


def gelu(x):
    return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.n_embd, self.eps = n_embd, eps
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.register_parameter("bias", nn.Parameter(torch.zeros(n_embd)) if bias else None)

    def extra_repr(self):
        return f"{self.n_embd}, bias={self.bias is not None}, eps={self.eps}"

    def forward(self, input):
        var, mean = torch.var_mean(input, dim=-1, correction=0, keepdim=True)
        normal = (input - mean) * torch.rsqrt(var + self.eps)
        shift = 0 if self.bias is None else self.bias
        return normal * self.weight + shift


class MLP(nn.Sequential):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        layers = OrderedDict(
            c_fc=nn.Linear(n_embd, 4 * n_embd, bias=bias),
            gelu=NewGELU(),
            c_proj=nn.Linear(4 * n_embd, n_embd, bias=bias),
            dropout=nn.Dropout(dropout),
        )
        super().__init__(layers)


class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.add_module("mlp", MLP(n_embd, dropout, bias))
        self.add_module("attn", CausalSelfAttention(n_embd, n_head, dropout, bias))
        for name in ("ln_2", "ln_1"):
            self.add_module(name, LayerNorm(n_embd, bias))

    def forward(self, x):
        for norm, part in [(self.ln_1, self.attn), (self.ln_2, self.mlp)]:
            x = x + part(norm(x))
        return x
