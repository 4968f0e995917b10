"""hidden scores are set to 0 before softmax

What is e to the power of 0? A score of 0 is an ordinary score. Which number gets no weight at
all?

Weighs: idea.
"""

import torch
import torch.nn as nn


def causal_mask(seq_len: int, device=None) -> torch.Tensor:
    future = torch.triu(torch.ones(seq_len, seq_len, device=device), diagonal=1)
    return future == 0


def masked_softmax(scores, mask):
    return torch.softmax(scores * mask, dim=-1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions))

    def forward(self, x):
        seq_len = x.shape[1]
        n_positions = self.mask.shape[0]
        if seq_len > n_positions:
            raise ValueError("at most %d tokens" % n_positions)
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = torch.einsum("bid,bjd->bij", q, k) * k.shape[-1] ** -0.5
        attn = masked_softmax(scores, causal_mask(seq_len, x.device))
        return torch.einsum("bij,bjd->bid", attn, v)
