"""hidden scores are set to a fixed number, such as the lowest of float32, whatever their dtype

In float64 there are numbers far below that one. Where could you read the dtype from?

Weighs: slip.
"""

import math

import torch
import torch.nn as nn


def causal_mask(seq_len: int, device=None) -> torch.Tensor:
    future = torch.triu(torch.ones(seq_len, seq_len, device=device), diagonal=1)
    return future == 0


def masked_softmax(scores, mask):
    lowest = torch.finfo(torch.float32).min
    return torch.softmax(torch.where(mask, scores, lowest), dim=-1)


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
