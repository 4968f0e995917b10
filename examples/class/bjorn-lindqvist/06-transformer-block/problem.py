import math

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    # mine from problem 05, with the mask always on
    def __init__(self, n_embd, n_head, dropout=0.0, bias=True):
        super().__init__()
        self.n_head = n_head
        self.scale = (n_embd // n_head) ** -0.5
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = (
            part.unflatten(2, (self.n_head, -1)).movedim(2, 1)
            for part in self.c_attn(x).chunk(3, dim=2)
        )
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        i = torch.arange(T, device=x.device)
        scores = scores.masked_fill(i[None, :] > i[:, None], -float("inf"))
        y = torch.einsum("bhij,bhjd->bhid", self.attn_dropout(scores.softmax(dim=-1)), v)
        return self.resid_dropout(self.c_proj(y.movedim(1, 2).flatten(2)))


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True)
        x = (x - mean) / torch.sqrt(var + self.eps) * self.weight
        if self.bias is not None:
            x = x + self.bias
        return x


class MLP(nn.Module):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        h = gelu(self.c_fc(x))
        return self.dropout(self.c_proj(h))


class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.ln_1 = LayerNorm(n_embd, bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = LayerNorm(n_embd, bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x
