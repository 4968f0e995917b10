"""All matrices on their side: keys times queries, and a softmax over the keys, now dimension 1."""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q, k, v = self.query(x).mT, self.key(x), self.value(x).mT  # (B, C, T), (B, T, C), (B, C, T)
        weights = torch.softmax(k @ q, dim=1)  # (B, keys, queries)
        return (v @ weights).mT.contiguous()
