"""the scores are divided by their sum instead of going through a softmax

That makes rows sum to 1, but scores may be negative, and a weight may not. What does a softmax
do first?

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
        scores = q @ k.mT
        weights = scores / scores.sum(dim=-1, keepdim=True)
        return weights @ v
