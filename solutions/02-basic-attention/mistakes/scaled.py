"""the scores are divided by √n_embd

Scaling is the subject of the next problem. Which formula does this README give?
"""

import math

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
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        return torch.softmax(scores, dim=-1) @ v
