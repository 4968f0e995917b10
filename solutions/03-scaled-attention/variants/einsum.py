"""Use einsum for all products. Draw queries and keys with one call."""

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
    q, k = torch.randn(2, n_pairs, d_k, generator=generator)
    products = torch.einsum("nd,nd->n", q, k)
    if scaled:
        products = products * d_k**-0.5
    return float(((products - products.mean()) ** 2).mean())
