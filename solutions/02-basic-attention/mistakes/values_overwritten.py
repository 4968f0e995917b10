"""each result is written over a value that later positions still need

A loop may write its results where nothing reads any more. Where are yours, and where the values?
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
        q, k, v = self.query(x), self.key(x), self.value(x)
        for i in range(x.shape[1]):
            weights = torch.softmax(q[:, i : i + 1] @ k.mT, dim=-1)
            v = torch.cat([v[:, :i], weights @ v, v[:, i + 1 :]], dim=1)
        return v
