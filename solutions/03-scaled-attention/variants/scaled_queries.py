"""Scale the queries before the product, and apply the weights of the layers with F.linear."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v):
    q = q * (q.shape[-1] ** -0.5)
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v


class ScaledAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.n_embd = n_embd
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q, k, v = (
            F.linear(x, layer.weight, layer.bias) for layer in (self.query, self.key, self.value)
        )
        return scaled_dot_product_attention(q, k, v)


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    q = torch.empty(n_pairs, d_k).normal_(generator=generator)
    k = torch.empty(n_pairs, d_k).normal_(generator=generator)
    variance = (q * k).sum(1).var(unbiased=False).item()
    return variance / d_k if scaled else variance
