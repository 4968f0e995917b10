"""the weights are rounded to float32 on the way, so that float64 loses half its digits

Which dtype do your scores have before and after each step? Nothing here needs to change it.

Weighs: slip.
"""

import torch
import torch.nn.functional as F
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        weights = F.softmax(q @ k.mT, dim=-1, dtype=torch.float32).to(x.dtype)
        return weights @ v
