"""the result is float32 whatever the dtype of x

What comes in as float64 should come out as float64. Where is the dtype fixed in your code?

Weighs: slip.
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
        out = torch.zeros(x.shape)
        for b, sequence in enumerate(x):
            q, k, v = self.query(sequence), self.key(sequence), self.value(sequence)
            out[b] = torch.softmax(q @ k.T, dim=-1) @ v
        return out
