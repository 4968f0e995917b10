"""Write the formula line by line with torch.nn.functional and matmul."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v):
    d_k = q.size(-1)
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d_k)
    attn = F.softmax(scores, dim=-1)
    return torch.matmul(attn, v)


class ScaledAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.n_embd = n_embd
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q = self.query(x)
        k = self.key(x)
        v = self.value(x)
        return scaled_dot_product_attention(q, k, v)


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    q = torch.randn((n_pairs, d_k), generator=generator)
    k = torch.randn((n_pairs, d_k), generator=generator)
    dots = torch.sum(q * k, dim=1)
    if scaled:
        dots = dots / math.sqrt(d_k)
    return torch.var(dots, unbiased=False).item()
