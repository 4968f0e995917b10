"""only the weights of the layers are used, not their biases

A layer is more than its weight. What does calling it do?
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
        q = x @ self.query.weight.T
        k = x @ self.key.weight.T
        v = x @ self.value.weight.T
        return torch.softmax(q @ k.mT, dim=-1) @ v
