"""The bias of `key` is left out, as it adds the same to all scores of a query."""

import torch.nn.functional as F
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        keys = F.linear(x, self.key.weight)  # softmax ignores what is added to a whole row
        return F.softmax(self.query(x) @ keys.mT, dim=-1) @ self.value(x)
