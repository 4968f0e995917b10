"""Process one sequence at a time with torch.vmap. Assign hidden scores by index."""

import math

import torch
from torch import nn


def causal_mask(seq_len, device=None):
    i, j = torch.tril_indices(seq_len, seq_len, device=device)
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool, device=device)
    mask[i, j] = True
    return mask


def masked_softmax(scores, mask):
    scores = scores.clone()
    scores[~mask.expand_as(scores)] = -math.inf
    return scores.softmax(dim=-1)


def attend(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    allowed = causal_mask(q.shape[0], q.device)
    return torch.where(allowed, scores, -math.inf).softmax(-1) @ v


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.n_embd, self.n_positions = n_embd, n_positions
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions).half(), persistent=False)

    def forward(self, x):
        if x.shape[1] > self.n_positions:
            raise ValueError(f"n_positions is {self.n_positions}, the sequence has {x.shape[1]}")
        return torch.vmap(attend)(self.query(x), self.key(x), self.value(x))
