"""one softmax runs over all scores of a sequence at once

How many weights should sum to 1: those of one query, or those of all queries together?

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
        B, T, C = x.shape
        scores = self.query(x) @ self.key(x).mT
        weights = scores.view(B, T * T).softmax(dim=-1).view(B, T, T)
        return weights @ self.value(x)
