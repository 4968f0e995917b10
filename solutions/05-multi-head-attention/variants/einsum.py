"""Use einsum for products, and create the mask by comparing indices."""

import torch
from torch import nn


def split_heads(x, n_head):
    return x.unflatten(2, (n_head, -1)).movedim(2, 1)


def merge_heads(x):
    return x.movedim(1, 2).flatten(2)


class MultiHeadAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, causal=False, bias=True):
        super().__init__()
        if n_head < 1 or n_embd % n_head:
            raise ValueError("bad number of heads")
        self.n_embd = n_embd
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.scale = self.head_dim**-0.5
        self.causal = causal
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)
        self.c_proj = nn.Linear(n_embd, n_embd, bias)
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias)

    def mask(self, scores):
        i = torch.arange(scores.shape[-1], device=scores.device)
        return scores.masked_fill(i[None, :] > i[:, None], -float("inf"))

    def forward(self, x):
        qkv = self.c_attn(x)
        q = split_heads(qkv[..., : self.n_embd], self.n_head)
        k = split_heads(qkv[..., self.n_embd : 2 * self.n_embd], self.n_head)
        v = split_heads(qkv[..., 2 * self.n_embd :], self.n_head)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        if self.causal:
            scores = self.mask(scores)
        att = self.attn_dropout(scores.softmax(dim=-1))
        y = torch.einsum("bhij,bhjd->bhid", att, v)
        return self.resid_dropout(self.c_proj(merge_heads(y)))
