"""the largest score of all, not of each row, is subtracted before exp

A row far below the largest score of all becomes exp(-large) = 0 throughout. Whose maximum makes
each row safe?
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
        scores = q @ k.mT
        exp_scores = torch.exp(scores - scores.max())
        return exp_scores / exp_scores.sum(dim=-1, keepdim=True) @ v
