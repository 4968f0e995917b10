"""the weights average x itself, so that the value layer has no part

There are three layers. What does each of them make of x, and where is it used?

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
        q = self.query(x)
        k = self.key(x)
        attention_weights = F.softmax(q @ k.mT, dim=-1)
        return attention_weights @ x
