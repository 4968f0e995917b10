"""queries and keys have changed places

Row i of the scores belongs to query i and column j to key j. Which of the two do you transpose?

Weighs: idea.
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
        scores = k @ q.transpose(-2, -1)
        weights = torch.softmax(scores, dim=-1)
        return weights @ v
