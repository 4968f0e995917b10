"""Apply attention to each sequence with torch.vmap. Use a helper class and optional parameters."""

import torch
from torch import nn


class Scores(nn.Module):
    def forward(self, q, k, scale):
        return q @ k.transpose(-2, -1) * scale


def scaled_dot_product_attention(q, k, v, scale=None):
    scale = scale or q.shape[-1] ** -0.5
    return nn.Softmax(dim=-1)(Scores()(q, k, scale)) @ v


class ScaledAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True, scale=None):
        super().__init__()
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.scale = scale or 1 / n_embd**0.5
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def attend(self, x):
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), self.scale)

    def forward(self, x):
        return torch.vmap(self.attend)(x)


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    draws = torch.normal(0.0, 1.0, (d_k, n_pairs, 2), generator=generator)
    q, k = draws[..., 0], draws[..., 1]
    products = (q * k).sum(0)
    if scaled:
        products = products.div(torch.tensor(d_k).sqrt())
    return float(products.numpy().var())
