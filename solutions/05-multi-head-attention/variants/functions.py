"""Write attention as a pure function with the dropout layer as an argument."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_head):
    batch, seq_len, n_embd = x.size()
    x = x.reshape(batch, seq_len, n_head, n_embd // n_head)
    return x.permute(0, 2, 1, 3)


def merge_heads(x):
    batch, n_head, seq_len, head_dim = x.size()
    x = x.permute(0, 2, 1, 3)
    return x.reshape(batch, seq_len, n_head * head_dim)


def attention(q, k, v, causal, dropout):
    scores = torch.matmul(q, k.transpose(2, 3)) * k.size(-1) ** -0.5
    if causal:
        n = q.size(2)
        future = torch.triu(torch.ones(n, n, dtype=torch.bool, device=q.device), diagonal=1)
        scores = scores.masked_fill(future, -torch.inf)
    attn = F.softmax(scores, dim=-1)
    attn = dropout(attn)
    return torch.matmul(attn, v)


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        n_embd: int = 768,
        n_head: int = 12,
        dropout: float = 0.0,
        causal: bool = False,
        bias: bool = True,
    ):
        super().__init__()
        if n_head <= 0:
            raise ValueError("there must be at least one head")
        if n_embd % n_head:
            raise ValueError(f"{n_embd} can't be split into {n_head} heads")
        self.n_embd, self.n_head = n_embd, n_head
        self.head_dim = n_embd // n_head
        self.causal = causal
        self.c_attn = nn.Linear(n_embd, n_embd * 3, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        qkv = self.c_attn(x)
        q, k, v = [split_heads(t, self.n_head) for t in qkv.chunk(3, dim=-1)]
        out = attention(q, k, v, self.causal, self.attn_dropout)
        out = merge_heads(out)
        out = self.c_proj(out)
        out = self.resid_dropout(out)
        return out
