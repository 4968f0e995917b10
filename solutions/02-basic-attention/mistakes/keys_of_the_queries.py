"""the key layer is applied to the queries instead of to x

All three layers look at the same thing. What does each of yours take in?

Weighs: idea.
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
        q = self.query(x)
        k = self.key(q)
        v = self.value(x)
        return torch.softmax(q @ k.mT, dim=-1) @ v
