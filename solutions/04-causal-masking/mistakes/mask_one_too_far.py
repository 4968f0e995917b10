"""the causal mask lets each position see the next one as well

Write down the first row of the mask for four tokens. How many entries of it should be True? Look
at what the argument `diagonal` counts.

Weighs: idea.
"""

import math

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool, device=device), diagonal=1)


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    bias = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
    bias = bias.masked_fill(mask.logical_not(), -math.inf)
    return torch.softmax(scores + bias, dim=-1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.size(1)
        if T > len(self.mask):
            raise ValueError("sequence is longer than n_positions")
        q = self.query(x) / x.size(-1) ** 0.5
        att = torch.bmm(q, self.key(x).mT)
        att = masked_softmax(att, self.mask[None, :T, :T].bool())
        return torch.bmm(att, self.value(x))
