"""a fixed seed is set when a module is made, so that any two modules start with the same weights

A seed is the business of whoever runs an experiment, and setting it changes the chance of
everyone else. Does a layer need one?

Weighs: slip.
"""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        torch.manual_seed(42)
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        return torch.softmax(q @ k.mT, dim=-1) @ v
