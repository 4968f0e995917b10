"""Compute the weights as exp(score - logsumexp of the row).

This is less exact for large scores, as they and their logsumexp are rounded before the subtraction.
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
        scores = self.query(x) @ self.key(x).transpose(-1, -2)
        log_weights = scores - scores.logsumexp(dim=-1, keepdim=True)
        return log_weights.exp() @ self.value(x)
