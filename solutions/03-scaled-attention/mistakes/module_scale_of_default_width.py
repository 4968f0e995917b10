"""ScaledAttention divides the scores by √768, whatever its width

The width of 768 is only the default. What is the width of the queries at hand?

Weighs: idea of ScaledAttention.
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
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / 768**0.5
        return torch.softmax(scores, -1) @ self.value(x)


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    q, k = torch.randn(2, n_pairs, d_k, generator=generator)
    products = torch.einsum("nd,nd->n", q, k)
    if scaled:
        products = products * d_k**-0.5
    return float(((products - products.mean()) ** 2).mean())
