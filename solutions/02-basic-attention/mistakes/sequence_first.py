"""x is read as (T, B, C), so that each position attends across the batch

Here the batch comes first: (B, T, C). Between which positions should your scores be?
"""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q = self.query(x).transpose(0, 1)
        k = self.key(x).transpose(0, 1)
        v = self.value(x).transpose(0, 1)
        out = torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v
        return out.transpose(0, 1)
