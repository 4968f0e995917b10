"""x is multiplied with the weights of the layers as they are stored, not transposed

nn.Linear keeps its weight as (out, in). With a square weight a wrong order goes unnoticed; what
does calling the layer do?
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
        def project(layer):
            y = x @ layer.weight
            return y if layer.bias is None else y + layer.bias

        q, k, v = project(self.query), project(self.key), project(self.value)
        return torch.softmax(q @ k.mT, dim=-1) @ v
