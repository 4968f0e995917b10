"""all sequences of the batch attend to each other as if they were one

Each sequence is a text of its own. Which shape do your scores have, and which should they have?
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
        flat = x.reshape(B * T, C)
        q, k, v = self.query(flat), self.key(flat), self.value(flat)
        out = torch.softmax(q @ k.T, dim=-1) @ v
        return out.reshape(B, T, C)
