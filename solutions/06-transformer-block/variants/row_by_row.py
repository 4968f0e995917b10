"""Process one row at a time in Python loops. √(2/π) is rounded, and eps is a buffer."""

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
    if x.dim() > 1:
        return torch.stack([gelu(row) for row in x])
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.n_embd = n_embd
        self.register_buffer("eps", torch.tensor(eps, dtype=torch.float64), persistent=False)
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None

    def row(self, x):
        centred = x - x.sum() / self.n_embd
        variance = centred.dot(centred) / self.n_embd
        y = centred / (variance + self.eps.to(x.dtype)).sqrt() * self.weight
        return y if self.bias is None else y + self.bias

    def forward(self, x):
        rows = x.reshape(-1, self.n_embd)
        return torch.stack([self.row(row) for row in rows]).reshape(x.shape)


class MLP(nn.Module):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        tokens = [self.c_proj(gelu(self.c_fc(x[:, t]))) for t in range(x.shape[1])]
        return self.dropout(torch.stack(tokens, dim=1))


class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.ln_1 = LayerNorm(n_embd, bias)
        self.ln_2 = LayerNorm(n_embd, bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x):
        h = self.ln_1(x)
        h = self.attn(h)
        x = x + h
        h = self.ln_2(x)
        h = self.mlp(h)
        return x + h
