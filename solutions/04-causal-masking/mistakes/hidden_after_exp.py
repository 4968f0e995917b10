"""exp is taken of hidden scores too, and they are set to 0 only then

The weights are right, but the gradient isn't finite: on the way back the 0 meets the infinite exp
of a large hidden score. Could such scores be taken out before exp?
"""

import math

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool, device=device))


def masked_softmax(scores, mask):
    top = scores.masked_fill(~mask, -math.inf).amax(dim=-1, keepdim=True)
    exps = torch.where(mask, torch.exp(scores - top), 0.0)
    return exps / exps.sum(dim=-1, keepdim=True)


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
