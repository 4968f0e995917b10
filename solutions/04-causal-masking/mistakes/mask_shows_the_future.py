"""the causal mask is upside down: each position sees itself and later ones

Row i of the mask belongs to query i. Which side of the diagonal holds the keys that come before
it?

Weighs: idea.
"""

import torch
import torch.nn as nn


def causal_mask(seq_len: int, device=None) -> torch.Tensor:
    future = torch.triu(torch.ones(seq_len, seq_len, device=device), diagonal=0)
    return future == 1


def masked_softmax(scores, mask):
    hidden = torch.finfo(scores.dtype).min
    return torch.where(mask, scores, hidden).softmax(dim=-1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd: int = 768, n_positions: int = 1024, bias: bool = True):
        super().__init__()
        self.n_embd = n_embd
        self.n_positions = n_positions
        self.query = nn.Linear(n_embd, n_embd, bias)
        self.key = nn.Linear(n_embd, n_embd, bias)
        self.value = nn.Linear(n_embd, n_embd, bias)
        self.register_buffer("mask", causal_mask(n_positions), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.size(1)
        if T > len(self.mask):
            raise ValueError("sequence is longer than n_positions")
        q = self.query(x) / x.size(-1) ** 0.5
        att = torch.bmm(q, self.key(x).mT)
        att = masked_softmax(att, self.mask[None, :T, :T].bool())
        return torch.bmm(att, self.value(x))
