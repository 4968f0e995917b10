"""Join heads and batch for bmm, use logsumexp, and let the mask grow with the sequences.

This is less exact for large scores, as they and their logsumexp are rounded before the subtraction.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_head):
    b, t, c = x.shape
    return x.reshape(b, t, n_head, -1).swapaxes(1, 2)


def merge_heads(x):
    return x.swapaxes(1, 2).flatten(start_dim=2)


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
        self.register_buffer("bias", torch.tril(torch.ones(8, 8)), persistent=True)

    def causal_part(self, length):
        if self.bias.shape[0] < length:
            self.bias = torch.tril(torch.ones(2 * length, 2 * length, device=self.bias.device))
        return self.bias[:length, :length]

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            split_heads(part, self.n_head).reshape(b * self.n_head, t, self.head_dim)
            for part in self.c_attn(x).chunk(3, -1)
        )
        scores = torch.bmm(q / math.sqrt(self.head_dim), k.transpose(1, 2))
        if self.causal:
            scores = scores.masked_fill(self.causal_part(t) == 0, -math.inf)
        weights = torch.exp(scores - scores.logsumexp(dim=-1, keepdim=True))
        weights = self.attn_dropout(weights)
        y = torch.bmm(weights, v).reshape(b, self.n_head, t, self.head_dim)
        return self.resid_dropout(self.c_proj(merge_heads(y)))
