"""A class for one head, which works on its slice of the projected embedding."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_head):
    B, T, C = x.shape
    heads = x.new_empty(B, n_head, T, C // n_head)
    for h in range(n_head):
        heads[:, h] = x[:, :, h * (C // n_head) : (h + 1) * (C // n_head)]
    return heads


def merge_heads(x):
    B, H, T, D = x.shape
    merged = torch.zeros(B, T, H * D, dtype=x.dtype, device=x.device)
    for h in range(H):
        merged[..., h * D : (h + 1) * D] = x[:, h]
    return merged


class Head(nn.Module):
    def __init__(self, dropout, causal):
        super().__init__()
        self.dropout = dropout
        self.causal = causal

    def forward(self, q, k, v):
        scores = torch.einsum("btd,bsd->bts", q, k).div(math.sqrt(q.shape[-1]))
        if self.causal:
            rows, columns = torch.triu_indices(*scores.shape[1:], offset=1)
            scores[:, rows, columns] = -torch.inf
        return self.dropout(torch.softmax(scores, 2)).bmm(v)


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
        self.head = Head(self.attn_dropout, causal)

    def forward(self, x):
        q, k, v = [split_heads(part, self.n_head) for part in self.c_attn(x).chunk(3, dim=2)]
        heads = [self.head(q[:, h], k[:, h], v[:, h]) for h in range(self.n_head)]
        return self.resid_dropout(self.c_proj(merge_heads(torch.stack(heads, dim=1))))
