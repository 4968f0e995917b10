"""the keys are reshaped to (B, C, T) instead of transposed

Rows of the keys should become columns, one for each key. Which two dimensions have to change
places?

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
        q = self.query(x)
        k = self.key(x).reshape(B, C, T)
        v = self.value(x)
        weights = torch.softmax(q @ k, dim=-1)
        return weights @ v
