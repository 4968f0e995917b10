"""the mask itself is added to the scores, 1 where allowed and 0 where hidden

Adding 1 to the allowed scores hides nothing; it only makes them a little larger. What would have
to be added to the hidden ones?

Weighs: idea.
"""

import math

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool, device=device))


def masked_softmax(scores, mask):
    return torch.softmax(scores + mask.to(scores.dtype), dim=-1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd: int = 768, n_positions: int = 1024, bias: bool = True):
        super().__init__()
        self.n_embd = n_embd
        self.n_positions = n_positions
        self.query = nn.Linear(n_embd, n_embd, bias)
        self.key = nn.Linear(n_embd, n_embd, bias)
        self.value = nn.Linear(n_embd, n_embd, bias)
        self.register_buffer("mask", causal_mask(n_positions), persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.mask.size(0):
            raise ValueError(f"sequence of length {T} is too long")
        q = self.query(x)
        k = self.key(x)
        v = self.value(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        weights = masked_softmax(scores, self.mask[:T, :T])
        return weights @ v
