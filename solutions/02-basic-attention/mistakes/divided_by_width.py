"""the scores are divided by n_embd

In this problem the scores go into the softmax as they are: a plain dot product, not a mean.
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
        scores = (q.unsqueeze(2) * k.unsqueeze(1)).mean(dim=-1)
        weights = torch.softmax(scores, dim=-1)
        return torch.matmul(weights, v)
