"""Contain cells from a notebook, with reused names and leftover experiments."""

# %%
import math
import torch
import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

torch.set_printoptions(precision=4)


# %%
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


# %%
def gelu(x):
    c = np.sqrt(2 / np.pi)
    return 0.5 * x * (1.0 + torch.tanh(c * (x + 0.044715 * torch.pow(x, 3.0))))


xs = torch.linspace(-3, 3, 7)
ys = gelu(xs)
# plt.plot(xs, ys)


# %%
class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = ((x - m) ** 2).mean(-1, keepdim=True)
        # v = x.var(-1, keepdim=True)   # was wrong by (n-1)/n
        xhat = (x - m) / torch.sqrt(v + self.eps)
        if self.bias is None:
            return self.weight * xhat
        return self.weight * xhat + self.bias


ln = LayerNorm(4)
out = ln(torch.tensor([1.0, 2.0, 3.0, 4.0]))
assert abs(out.mean().item()) < 1e-5


# %%
class MLP(nn.Module):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(gelu(self.c_fc(x))))


# %%
class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.ln_1 = LayerNorm(n_embd, bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = LayerNorm(n_embd, bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x):
        a = self.attn(self.ln_1(x))
        x = x + a
        m = self.mlp(self.ln_2(x))
        x = x + m
        return x


# %%
b = Block(8, 2)
b(torch.randn(2, 3, 8)).shape
