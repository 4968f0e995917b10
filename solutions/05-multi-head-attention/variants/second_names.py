"""Store the layers of problem 05 in a list, too, so that each parameter has two names."""

import math

import torch
from torch import nn


def split_heads(x, n_head):
    """(B, T, C) -> (B, n_head, T, C // n_head)."""
    return torch.stack(x.chunk(n_head, dim=-1), dim=1)


def merge_heads(x):
    """(B, n_head, T, head_dim) -> (B, T, n_head * head_dim)."""
    return torch.cat(x.unbind(1), dim=-1)


class MultiHeadAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, causal=False, bias=True):
        super().__init__()
        if n_head <= 0 or n_embd % n_head:
            raise ValueError(f"{n_head} heads for {n_embd} entries")
        self.n_embd, self.n_head, self.head_dim = n_embd, n_head, n_embd // n_head
        self.causal = causal
        # The list is created first, so PyTorch reports the names in the list.
        self.layers = nn.ModuleList(nn.Linear(n_embd, k * n_embd, bias=bias) for k in (3, 1))
        self.c_attn, self.c_proj = self.layers
        self.attn_dropout, self.resid_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.drops = nn.ModuleDict({"attn": self.attn_dropout, "resid": self.resid_dropout})

    def forward(self, x):
        seq_len = x.shape[1]
        into_heads, out_of_heads = self.layers
        q, k, v = (split_heads(part, self.n_head) for part in into_heads(x).chunk(3, dim=-1))
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(self.head_dim)
        if self.causal:
            seen = torch.ones(seq_len, seq_len, dtype=torch.bool, device=x.device).tril()
            scores = torch.where(seen, scores, -math.inf)
        weights = self.drops["attn"](scores.softmax(dim=-1))
        return self.drops["resid"](out_of_heads(merge_heads(weights @ v)))
