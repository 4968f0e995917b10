"""the scores are used as weights without a softmax

Look at what stands between the scores and the values. Do your weights sum to 1 for each query?

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
        scores = self.query(x) @ self.key(x).transpose(-1, -2)
        return scores @ self.value(x)
