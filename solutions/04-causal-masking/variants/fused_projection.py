"""Multiply with the stacked weights of all three layers. NumPy creates the mask."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def causal_mask(seq_len, device=None):
    mask = torch.from_numpy(np.tri(seq_len, dtype=bool))
    return mask if device is None else mask.to(device)


def masked_softmax(scores, mask):
    lowest = torch.full_like(scores, -torch.inf)
    return F.softmax(torch.where(mask, scores, lowest), -1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.n_embd = n_embd
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions), persistent=True)

    def forward(self, x):
        T = x.shape[1]
        if T > self.mask.shape[1]:
            raise ValueError(T)
        layers = (self.query, self.key, self.value)
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if self.query.bias is None else torch.cat([layer.bias for layer in layers])
        q, k, v = F.linear(x, weight, bias).split(self.n_embd, dim=-1)
        scores = (k @ q.mT).mT / self.n_embd**0.5
        return masked_softmax(scores, self.mask[:T, :T]) @ v
