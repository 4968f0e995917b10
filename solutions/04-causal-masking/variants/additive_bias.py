"""Add a bias of 0 and -inf to the scores. The buffer contains the floats 0 and 1."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def causal_mask(seq_len: int, device=None) -> torch.Tensor:
    return ~torch.triu(torch.ones((seq_len, seq_len), dtype=torch.bool, device=device), diagonal=1)


def bias_of(mask, dtype):
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(~mask, float("-inf"))


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.softmax(scores + bias_of(mask, scores.dtype), dim=-1)


class CausalAttention(nn.Module):
    mask: torch.Tensor

    def __init__(self, n_embd: int = 768, n_positions: int = 1024, bias: bool = True) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(n_embd, n_embd, bias=bias) for _ in range(3))
        self.register_buffer("mask", causal_mask(n_positions).float())
        self.scale = 1 / math.sqrt(n_embd)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seq_len = x.size(-2)
        if seq_len > self.mask.size(-1):
            raise ValueError(f"expected at most {self.mask.size(-1)} tokens, got {seq_len}")
        scores = torch.matmul(self.query(x), self.key(x).transpose(-1, -2)).mul(self.scale)
        mask = self.mask[:seq_len, :seq_len].bool()
        return torch.matmul(masked_softmax(scores, mask), self.value(x))
