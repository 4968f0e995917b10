"""The layers stand in an nn.ModuleDict, and go by their own names as well."""

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v):
    scores = torch.matmul(q, k.transpose(-1, -2)).div(q.size(-1) ** 0.5)
    return torch.matmul(scores.softmax(-1), v)


class ScaledAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True):
        super().__init__()
        names = ("query", "key", "value")
        self.layers = nn.ModuleDict({n: nn.Linear(n_embd, n_embd, bias=bias) for n in names})
        for name, layer in self.layers.items():
            setattr(self, name, layer)

    def forward(self, x):
        return scaled_dot_product_attention(*(layer(x) for layer in self.layers.values()))


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    q, k = (torch.randn(n_pairs, d_k, generator=generator) for _ in range(2))
    products = torch.linalg.vecdot(q, k)
    if scaled:
        products = products.div(d_k**0.5)
    return products.var(correction=0).item()
