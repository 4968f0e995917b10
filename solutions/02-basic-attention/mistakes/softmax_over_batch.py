"""the softmax runs over the sequences of the batch

Without a dim, or with the wrong one, the softmax takes a dimension that you may not expect.
Along which one should the weights sum to 1?

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
        q = self.query(x)
        k = self.key(x)
        v = self.value(x)
        scores = q.bmm(k.permute(0, 2, 1))
        weights = torch.softmax(scores, 0)
        return weights.bmm(v)
