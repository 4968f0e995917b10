"""Write a stable softmax by hand, which leaves out hidden scores before exp."""

from math import sqrt

import torch
from torch import Tensor, nn


def causal_mask(seq_len: int, device=None) -> Tensor:
    rows = torch.arange(seq_len, device=device).reshape(-1, 1)
    columns = torch.arange(seq_len, device=device).reshape(1, -1)
    return columns.le(rows)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    scores = scores.masked_fill(~mask, float("-inf"))
    scores = scores - scores.amax(dim=-1, keepdim=True).detach()
    powers = scores.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


class CausalAttention(nn.Module):
    """Causal self-attention with a single head."""

    def __init__(self, n_embd: int = 768, n_positions: int = 1024, bias: bool = True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions), persistent=False)

    def check(self, seq_len: int) -> None:
        if seq_len > self.mask.size(0):
            raise ValueError(f"sequence length {seq_len} exceeds {self.mask.size(0)}")

    def scores(self, x: Tensor) -> Tensor:
        q, k = self.query(x), self.key(x)
        return (q.unsqueeze(2) * k.unsqueeze(1)).sum(-1) / sqrt(q.size(-1))

    def forward(self, x: Tensor) -> Tensor:
        self.check(x.size(1))
        T = x.size(1)
        weights = masked_softmax(self.scores(x), self.mask.narrow(0, 0, T).narrow(1, 0, T))
        return (weights.unsqueeze(-1) * self.value(x).unsqueeze(1)).sum(2)
