"""the vectors come from Python's own random numbers

Only torch's generators know the seed of torch.manual_seed. Which functions draw from them?
"""

import math
import random

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
    dots = []
    for _ in range(n_pairs):
        q = [random.gauss(0, 1) for _ in range(d_k)]
        k = [random.gauss(0, 1) for _ in range(d_k)]
        dot = sum(a * b for a, b in zip(q, k))
        dots.append(dot / math.sqrt(d_k) if scaled else dot)
    mean = sum(dots) / n_pairs
    return sum((d - mean) ** 2 for d in dots) / n_pairs
