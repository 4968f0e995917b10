"""Use the attention of problem 05, std in LayerNorm, and hand-written dropout."""

import math

import torch
from torch import nn


def split_heads(x, n_head):
    batch, seq_len, n_embd = x.shape
    return x.view(batch, seq_len, n_head, n_embd // n_head).transpose(1, 2)


def merge_heads(x):
    batch, n_head, seq_len, head_dim = x.shape
    return x.transpose(1, 2).reshape(batch, seq_len, n_head * head_dim)


def drop(x, p, training):
    if not training:
        return x
    return x * (torch.rand_like(x) >= p) / (1 - p)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, dropout=0.0, bias=True):
        super().__init__()
        self.n_embd, self.n_head, self.p = n_embd, n_head, dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        T = x.size(1)
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        q, k, v = (
            split_heads(q, self.n_head),
            split_heads(k, self.n_head),
            split_heads(v, self.n_head),
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        mask = torch.tril(torch.ones(T, T, device=x.device))
        scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = drop(torch.softmax(scores, dim=-1), self.p, self.training)
        return drop(self.c_proj(merge_heads(weights @ v)), self.p, self.training)


def gelu(x):
    # tanh is 1 beyond 20, so larger entries need not be cubed
    z = x.clamp(-20, 20)
    return 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (z + 0.044715 * z**3)))


class LayerNorm(nn.Module):
    def __init__(self, n_embd, bias=True, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None
        self.eps = eps

    def forward(self, x):
        mean = torch.mean(x, -1, keepdim=True)
        std = torch.std(x, -1, correction=0, keepdim=True)
        x = (x - mean) / torch.sqrt(std**2 + self.eps)
        x = self.weight * x
        if self.bias is not None:
            x = x + self.bias
        return x


class MLP(nn.Module):
    def __init__(self, n_embd, dropout=0.0, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, n_embd * 4, bias=bias)
        self.c_proj = nn.Linear(n_embd * 4, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return drop(self.c_proj(gelu(self.c_fc(x))), self.dropout.p, self.training)


class Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, bias=True):
        super().__init__()
        self.ln_1 = LayerNorm(n_embd, bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = LayerNorm(n_embd, bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def attend(self, x):
        return x + self.attn(self.ln_1(x))

    def think(self, x):
        return x + self.mlp(self.ln_2(x))

    def forward(self, x):
        return self.think(self.attend(x))
