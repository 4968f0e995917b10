"""the result is made anew from plain numbers, so that no gradient can pass

A tensor made of numbers no longer knows where they came from. Can every step stay in PyTorch?
"""

import math

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        B, T, C = x.shape
        out = torch.zeros(B, T, C, dtype=x.dtype)
        for b in range(B):
            for i in range(T):
                scores = [torch.dot(q[b, i], k[b, j]).item() for j in range(T)]
                powers = [math.exp(score - max(scores)) for score in scores]
                for j in range(T):
                    out[b, i] += powers[j] / sum(powers) * v[b, j].data
        return out
