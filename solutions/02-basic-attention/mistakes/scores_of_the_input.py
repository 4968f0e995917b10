"""the scores compare x with itself, so that query and key layers have no part

Which two layers decide what is looked for, and what can be found?

Weighs: idea.
"""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        weights = torch.softmax(scores, dim=-1)
        return weights @ self.value(x)
