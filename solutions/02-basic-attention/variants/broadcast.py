"""Multiply all pairs by broadcasting, and sum. Use no matrix product."""

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
        scores = (q[:, :, None, :] * k[:, None, :, :]).sum(-1)  # (B, T, T)
        weights = scores.softmax(-1)
        return (weights[..., None] * v[:, None]).sum(-2)
