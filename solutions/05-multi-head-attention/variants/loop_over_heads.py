"""Loop over the heads, and use slices instead of reshapes."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_head):
    size = x.shape[-1] // n_head
    return torch.stack([x[..., h * size : (h + 1) * size] for h in range(n_head)], dim=1)


def merge_heads(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


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
        q, k, v = torch.tensor_split(self.c_attn(x), 3, dim=-1)
        heads = []
        for h in range(self.n_head):
            part = slice(h * self.head_dim, (h + 1) * self.head_dim)
            scores = torch.bmm(q[..., part], k[..., part].mT) / self.head_dim**0.5
            if self.causal:
                future = torch.full_like(scores[0], float("-inf")).triu(1)
                scores = scores + future
            heads.append(self.attn_dropout(scores.softmax(-1)) @ v[..., part])
        return self.resid_dropout(self.c_proj(torch.cat(heads, dim=-1)))
