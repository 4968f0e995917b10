"""Compute each score in Python loops, for all sequences at once. This is slow but correct."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_head):
    B, T, C = x.shape
    D = C // n_head
    heads = []
    for h in range(n_head):
        heads.append(torch.stack([x[:, t, h * D : (h + 1) * D] for t in range(T)], dim=1))
    return torch.stack(heads, dim=1)


def merge_heads(x):
    B, H, T, D = x.shape
    tokens = [torch.cat([x[:, h, t] for h in range(H)], dim=-1) for t in range(T)]
    return torch.stack(tokens, dim=1)


class MultiHeadAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, causal=False, bias=True):
        super().__init__()
        if n_head < 1 or n_embd % n_head != 0:
            raise ValueError("n_head must be positive and divide n_embd")
        self.n_embd = n_embd
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.causal = causal
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = [split_heads(t, self.n_head) for t in self.c_attn(x).chunk(3, -1)]
        B, H, T, D = q.shape
        scores = torch.full((B, H, T, T), -math.inf, dtype=x.dtype)
        for h in range(H):
            for i in range(T):
                query = q[:, h, i] / math.sqrt(D)
                for j in range(i + 1 if self.causal else T):
                    scores[:, h, i, j] = (query * k[:, h, j]).sum(-1)
        weights = self.attn_dropout(scores.softmax(-1))
        return self.resid_dropout(self.c_proj(merge_heads(weights @ v)))
