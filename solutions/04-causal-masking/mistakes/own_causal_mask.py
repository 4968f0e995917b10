"""masked_softmax makes a causal mask of its own and doesn't look at the one it is given

The same function is to serve for padding too, where whole keys are hidden. Where do you use the
argument `mask`?
"""

import math

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool, device=device))


def masked_softmax(scores, mask):
    n, m = scores.shape[-2:]
    allowed = torch.ones(n, m, dtype=torch.bool, device=scores.device).tril()
    return scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions))

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
