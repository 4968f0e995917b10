"""the layers are 768 wide whatever n_embd is

Look at the constructor's arguments: is each of them used?
"""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(768, 768, bias=bias)
        self.key = nn.Linear(768, 768, bias=bias)
        self.value = nn.Linear(768, 768, bias=bias)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        return torch.softmax(q @ k.mT, dim=-1) @ v
