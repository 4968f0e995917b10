"""Use einsum for products, and create a mask of the sequence's length in each call."""

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
        self.n_positions = n_positions
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions))

    def forward(self, x):
        seq_len = x.shape[1]
        if seq_len > self.n_positions:
            raise ValueError(f"{seq_len} tokens, but {self.n_positions} positions")
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = torch.einsum("bid,bjd->bij", q, k) * k.shape[-1] ** -0.5
        attn = masked_softmax(scores, causal_mask(seq_len, x.device))
        return torch.einsum("bij,bjd->bid", attn, v)
