"""Every score by itself, in Python loops; slow, and right."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_head):
    B, T, C = x.shape
    D = C // n_head
    rows = [
        [[x[b, t, h * D : (h + 1) * D] for t in range(T)] for h in range(n_head)] for b in range(B)
    ]
    return torch.stack([torch.stack([torch.stack(r) for r in head]) for head in rows])


def merge_heads(x):
    B, H, T, D = x.shape
    return torch.stack(
        [
            torch.stack([torch.cat([x[b, h, t] for h in range(H)]) for t in range(T)])
            for b in range(B)
        ]
    )


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
        for b in range(B):
            for h in range(H):
                for i in range(T):
                    for j in range(i + 1 if self.causal else T):
                        scores[b, h, i, j] = q[b, h, i].dot(k[b, h, j]) / math.sqrt(D)
        weights = self.attn_dropout(scores.softmax(-1))
        return self.resid_dropout(self.c_proj(merge_heads(weights @ v)))
