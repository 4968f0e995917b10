"""Use torch.vmap over sequences and heads. Set hidden scores to the lowest number of the dtype."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_head):
    B, T, C = x.shape
    return x.view(B, T, n_head, C // n_head).transpose(1, 2)


def merge_heads(x):
    B, H, T, D = x.shape
    return x.transpose(1, 2).reshape(B, T, H * D)


def head_weights(q, k):
    return q @ k.T / math.sqrt(q.shape[-1])


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
        q, k, v = (split_heads(t, self.n_head) for t in self.c_attn(x).split(self.n_embd, -1))
        scores = torch.vmap(torch.vmap(head_weights))(q, k)
        if self.causal:
            n = x.shape[1]
            future = torch.ones(n, n, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
        weights = self.attn_dropout(scores.softmax(-1))
        y = torch.vmap(torch.vmap(torch.mm))(weights, v)
        return self.resid_dropout(self.c_proj(merge_heads(y)))
