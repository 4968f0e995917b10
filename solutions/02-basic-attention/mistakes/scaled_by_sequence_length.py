"""the scores are divided by √T, the root of the sequence length

In this problem the scores go into the softmax as they are. What is the division for?
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
        k = self.key(x)
        v = self.value(x)
        att = torch.einsum("btc,bsc->bts", q, k) * T**-0.5
        att = att.softmax(-1)
        return att @ v
