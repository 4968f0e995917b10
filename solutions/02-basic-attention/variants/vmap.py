"""Define attention for one sequence, and apply it to the batch with torch.vmap."""

import torch
from torch import nn


def attend(q, k, v):
    return torch.softmax(q @ k.T, dim=1) @ v


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        return torch.vmap(attend)(self.query(x), self.key(x), self.value(x))
