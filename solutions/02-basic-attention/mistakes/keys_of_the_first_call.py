"""the keys of the first call are used for every x of the same size

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
        self.known = None

    def forward(self, x):
        if self.known is None or self.known.shape != x.shape:
            self.known = self.key(x)
        return torch.softmax(self.query(x) @ self.known.mT, dim=-1) @ self.value(x)
