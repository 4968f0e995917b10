"""the layers have no bias unless it is asked for

Compare the constructor's default values with those of the task.

Weighs: slip.
"""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = False):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        return torch.softmax(q @ k.mT, dim=-1) @ v
