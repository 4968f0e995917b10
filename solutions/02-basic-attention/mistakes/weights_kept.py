"""the attention weights of the first call are used for every x of the same size

Each call is about its own x. What does your module remember from one call to the next?
"""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.cache = {}

    def forward(self, x):
        T = x.size(1)
        if T not in self.cache:
            self.cache[T] = torch.softmax(self.query(x) @ self.key(x).mT, dim=-1)
        return self.cache[T] @ self.value(x)
