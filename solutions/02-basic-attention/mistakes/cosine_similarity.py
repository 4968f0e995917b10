"""queries and keys are brought to length 1 before they are compared

A cosine leaves out how long the vectors are. The formula's score is a plain dot product.

Weighs: idea.
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
        q = F.normalize(self.query(x), dim=-1)
        k = F.normalize(self.key(x), dim=-1)
        v = self.value(x)
        return F.softmax(q @ k.transpose(-2, -1), dim=-1) @ v
