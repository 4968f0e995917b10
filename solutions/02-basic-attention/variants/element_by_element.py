"""Compute each query, score and output separately, and write it into a new tensor."""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        for name in ("query", "key", "value"):
            setattr(self, name, nn.Linear(n_embd, n_embd, bias=bias))

    def forward(self, x):
        B, T, C = x.shape
        k, v = self.key(x), self.value(x)
        out = torch.zeros_like(x)
        for b in range(B):
            for i in range(T):
                query = self.query(x[b, i])
                scores = x.new_zeros(T)
                for j in range(T):
                    scores[j] = torch.dot(query, k[b, j])
                weights = torch.softmax(scores, -1)
                for j in range(T):
                    out[b, i] += weights[j] * v[b, j]
        return out
