"""Queries, keys and values of all heads in one 5-D tensor; both scaled by the fourth root."""

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
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        root = self.head_dim**-0.25
        scores = (q * root) @ (k * root).transpose(-2, -1)
        if self.causal:
            allowed = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
            scores = torch.where(allowed, scores, torch.finfo(scores.dtype).min)
        y = self.attn_dropout(F.softmax(scores, dim=3)) @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))
