"""A loop over queries, each with the keys it may see; no mask at all."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_head):
    return torch.stack(x.chunk(n_head, dim=-1), dim=1)


def merge_heads(x):
    return torch.cat(x.unbind(dim=1), dim=-1)


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
        q, k, v = (split_heads(t, self.n_head) for t in self.c_attn(x).chunk(3, dim=-1))
        rows = []
        for i in range(x.size(1)):
            seen = i + 1 if self.causal else x.size(1)
            scores = (q[:, :, i : i + 1] * k[:, :, :seen]).sum(-1) / math.sqrt(self.head_dim)
            weights = self.attn_dropout(scores.softmax(-1)).unsqueeze(-1)
            rows.append((weights * v[:, :, :seen]).sum(2))
        y = torch.stack(rows, dim=2)
        return self.resid_dropout(self.c_proj(merge_heads(y)))
