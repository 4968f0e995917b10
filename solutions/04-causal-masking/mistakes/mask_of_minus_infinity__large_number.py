"""causal_mask returns the numbers to add to the scores, 0 and -inf, rather than a bool tensor

Adding 0 or -inf is a good way to mask, but it belongs into masked_softmax. What does the task say
that causal_mask returns?
"""

import math

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    mask = torch.full((seq_len, seq_len), -1e9, device=device)
    return torch.triu(mask, diagonal=1)


def masked_softmax(scores, mask):
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -math.inf).softmax(-1)
    return (scores + mask.to(scores.dtype)).softmax(-1)


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
