"""Broadcast and sum instead of using matrix products. Compute the variance by Welford's rule."""

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v):
    d_k = torch.tensor(q.shape[-1]).to(q)
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(dim=-1)  # (..., n, m)
    scores = scores.mul(d_k.rsqrt())
    weights = nn.functional.softmax(scores, -1)
    return (weights[..., None] * v[..., None, :, :]).sum(dim=-2)  # (..., n, d_v)


class ScaledAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True):
        super(ScaledAttention, self).__init__()
        self.key, self.query, self.value = (nn.Linear(n_embd, n_embd, bias) for _ in range(3))

    def forward(self, x):
        queries = torch.nn.functional.linear(x, self.query.weight, self.query.bias)
        keys, values = self.key(x), self.value(x)
        mixed = [scaled_dot_product_attention(*one) for one in zip(queries, keys, values)]
        return torch.stack(mixed, 0)


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    mean, total = 0.0, 0.0
    for count in range(1, n_pairs + 1):
        pair = torch.normal(torch.zeros(2, d_k, dtype=torch.float64), 1.0, generator=generator)
        product = float(pair[0] @ pair[1])
        product = product / d_k**0.5 if scaled else product
        step = product - mean
        mean += step / count
        total += step * (product - mean)
    return total / n_pairs
