"""Transpose everything: tokens are columns, and softmax is applied along dimension 1, the keys."""

import torch
from torch import nn
from torch.nn.functional import softmax


def causal_mask(seq_len, device=None):
    distance = torch.arange(seq_len, device=device).view(-1, 1) - torch.arange(
        seq_len, device=device
    )
    return torch.sign(distance) != -1


def masked_softmax(scores, mask):
    hidden = mask.expand_as(scores).mT ^ True
    return softmax(scores.mT.masked_fill(hidden, -float("inf")), dim=-2).mT


class CausalAttention(nn.Module):
    def __init__(self, n_embd: int = 768, n_positions: int = 1024, bias: bool = True):
        super().__init__()
        self.query, self.key, self.value = [nn.Linear(n_embd, n_embd, bias) for _ in "qkv"]
        self.root = torch.sqrt(torch.tensor(n_embd, dtype=torch.float64)).item()
        self.register_buffer("mask", torch.empty(n_positions, n_positions, dtype=torch.bool))
        self.mask.copy_(causal_mask(n_positions))

    def forward(self, x):
        if x.size(1) > self.mask.size(1):
            raise ValueError(f"no room for {x.size(1)} tokens")
        q, k, v = (layer(x).transpose(1, 2) for layer in (self.query, self.key, self.value))
        scores = torch.einsum("bct,bcs->bst", q, k).div(self.root)  # (B, keys, queries)
        shown = self.mask.T[: x.size(1), : x.size(1)]
        weights = masked_softmax(scores.mT, shown.T).mT
        return torch.matmul(v, weights).transpose(1, 2)
