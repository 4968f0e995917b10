"""x is added to the result

The residual connection belongs to the block around attention. What does the formula end with?
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
        attended = torch.softmax(q @ k.mT, dim=-1) @ v
        return x + attended
