"""ScaledAttention divides the scores by the square root of the sequence length

In x of shape (B, T, C), which of the three is the length of a query?

Weighs: idea of ScaledAttention.
"""

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
        B, T, C = x.shape
        q, k, v = self.query(x), self.key(x), self.value(x)
        att = F.softmax(q @ k.transpose(-2, -1) * T**-0.5, dim=-1)
        return att @ v


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    q = torch.randn((n_pairs, d_k), generator=generator)
    k = torch.randn((n_pairs, d_k), generator=generator)
    dots = torch.sum(q * k, dim=1)
    if scaled:
        dots = dots / math.sqrt(d_k)
    return torch.var(dots, unbiased=False).item()
