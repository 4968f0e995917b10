"""the softmax runs over the queries instead of the keys

Each query shares out a weight of 1 among the keys. In scores of shape (B, T, T), which of the
two T counts the keys?

Weighs: idea.
"""

import torch
import torch.nn.functional as F
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q = self.query(x)
        k = self.key(x)
        v = self.value(x)
        scores = torch.matmul(q, k.transpose(1, 2))
        weights = F.softmax(scores, dim=1)
        return torch.matmul(weights, v)
