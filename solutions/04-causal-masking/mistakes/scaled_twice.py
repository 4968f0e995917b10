"""the scores are divided by d_k in all: by it in place of √d_k, or by √d_k twice

Count the places where something is divided by the root of the width. How many should there be?
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def causal_mask(seq_len, device=None):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool, device=device))


def masked_softmax(scores, mask):
    scores = scores.masked_fill(~mask, float("-inf"))
    return F.softmax(scores, dim=-1)


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
        att = torch.bmm(q, self.key(x).mT) / math.sqrt(q.size(-1))
        att = masked_softmax(att, self.mask[None, :T, :T].bool())
        return torch.bmm(att, self.value(x))
