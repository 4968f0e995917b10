"""Reshape the layers' weights by heads, and use one einsum per step without splitting tensors."""

import math

import torch
from torch import nn


def split_heads(x, n_head):
    return torch.stack(torch.tensor_split(x, n_head, dim=2), dim=1)


def merge_heads(x):
    return torch.einsum("bhtd->bthd", x).reshape(x.shape[0], x.shape[2], -1)


class MultiHeadAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, dropout=0.0, causal=False, bias=True):
        super().__init__()
        if n_head not in range(1, n_embd + 1) or n_embd % n_head:
            raise ValueError("n_head has to be a divisor of n_embd")
        self.n_embd, self.n_head, self.head_dim = n_embd, n_head, n_embd // n_head
        self.causal = causal
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        heads = (3, self.n_head, self.head_dim)
        qkv = torch.einsum("btc,nhdc->nbhtd", x, self.c_attn.weight.reshape(*heads, self.n_embd))
        if self.c_attn.bias is not None:
            qkv = qkv + self.c_attn.bias.reshape(3, 1, self.n_head, 1, self.head_dim)
        scores = torch.einsum("bhid,bhjd->bhij", qkv[0], qkv[1]) / math.sqrt(self.head_dim)
        if self.causal:
            i = torch.arange(x.shape[1], device=x.device)
            scores = torch.where(i[:, None] >= i, scores, scores.new_tensor(-math.inf))
        weights = self.attn_dropout(nn.Softmax(dim=-1)(scores))
        into = self.c_proj.weight.reshape(self.n_embd, self.n_head, self.head_dim)
        y = torch.einsum("bhij,bhjd,chd->bic", weights, qkv[2], into)
        return self.resid_dropout(y if self.c_proj.bias is None else y + self.c_proj.bias)
