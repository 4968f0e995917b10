"""the lowest number of the dtype is added to hidden scores, and some stay above the allowed ones

In float32 that number is about -3.4e38. A hidden score of 2e38 then becomes -1.4e38: is that below
an allowed one of -2e38? Is there something to add that leaves nothing of any score?

Weighs: slip.
"""

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    i = torch.arange(seq_len, device=device)
    return i[None, :] <= i[:, None]


def masked_softmax(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores + (~mask).to(scores.dtype) * lowest, dim=-1)


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
