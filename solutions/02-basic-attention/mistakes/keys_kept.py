"""keys and values of earlier calls are kept and attended to as well

Each call is about its own x. What does your module remember from one call to the next?
"""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.past = None

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        if self.past is not None and self.past[0].shape[0] == x.shape[0]:
            k = torch.cat([self.past[0], k], dim=1)
            v = torch.cat([self.past[1], v], dim=1)
        self.past = k.detach(), v.detach()
        return torch.softmax(q @ k.mT, dim=-1) @ v
