"""Use F.linear with the layers' weights and F.dropout. Create the layers in a different order."""

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


class MultiHeadAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, causal=False, bias=True, name=None):
        super().__init__()
        if not (n_head >= 1 and n_embd % n_head == 0):
            raise ValueError(f"n_head={n_head}")
        self.resid_dropout, self.attn_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.n_embd, self.n_head, self.head_dim = n_embd, n_head, n_embd // n_head
        self.causal, self.name, self.p = causal, name, dropout
        self.last_weights = None

    def forward(self, x, keep_weights=False):
        w, b = self.c_attn.weight, self.c_attn.bias
        parts = []
        for n in range(3):
            rows = slice(n * self.n_embd, (n + 1) * self.n_embd)
            parts.append(
                split_heads(F.linear(x, w[rows], None if b is None else b[rows]), self.n_head)
            )
        q, k, v = parts
        scores = (q * self.head_dim**-0.5).matmul(k.mT)
        if self.causal:
            t = x.size(1)
            scores = scores.masked_fill(~torch.ones(t, t).tril().bool().to(x.device), float("-inf"))
        weights = F.dropout(F.softmax(scores, -1), p=self.p, training=self.training)
        if keep_weights:
            self.last_weights = weights.detach()
        y = F.linear(merge_heads(weights @ v), self.c_proj.weight, self.c_proj.bias)
        return F.dropout(y, p=self.p, training=self.training)
