"""each query is multiplied with itself

A query and a key are drawn independently of each other. Are yours?

Weighs: idea of dot_product_variance.
"""

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v):
    scale = k.shape[-1] ** -0.5
    scores = torch.einsum("...nd,...md->...nm", q, k) * scale
    return torch.einsum("...nm,...me->...ne", scores.softmax(-1), v)


class ScaledAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        for name in ("value", "key", "query"):
            setattr(self, name, nn.Linear(n_embd, n_embd, bias))

    def forward(self, x):
        q, k, v = (layer(x) for layer in (self.query, self.key, self.value))
        return scaled_dot_product_attention(q, k, v)


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    q = torch.randn(n_pairs, d_k, generator=generator)
    k = q
    products = (q * k).sum(dim=1)
    if scaled:
        products = products / d_k**0.5
    return products.var(unbiased=False).item()
