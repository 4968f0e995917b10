"""one more layer is applied to the result

An output projection comes with multi-head attention in problem 05. How many layers does this
one have?
"""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        y = torch.softmax(q @ k.mT, dim=-1) @ v
        return self.proj(y)
