"""Write softmax and dropout by hand, with exp and rand_like."""

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


def softmax(scores):
    scores = scores - scores.max(dim=-1, keepdim=True).values
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


def drop(x, layer):
    if not layer.training:
        return x
    keep = torch.rand_like(x) >= layer.p
    return torch.where(keep, x / (1 - layer.p), 0.0)


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
        q, k, v = (split_heads(t, self.n_head) for t in self.c_attn(x).chunk(3, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        if self.causal:
            positions = torch.arange(x.shape[1])
            scores[..., positions[None] > positions[:, None]] = -math.inf
        weights = drop(softmax(scores), self.attn_dropout)
        return drop(self.c_proj(merge_heads(weights @ v)), self.resid_dropout)
