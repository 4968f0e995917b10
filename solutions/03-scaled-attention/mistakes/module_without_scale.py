"""the scores are not divided by √d_k

Your function has the scale. Could the module make use of it?

Weighs: idea of ScaledAttention.
"""

import math

import torch
from torch import Tensor, nn


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ v


class ScaledAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)
        return torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    q = torch.randn(n_pairs, d_k, generator=generator)
    k = torch.randn(n_pairs, d_k, generator=generator)
    products = (q * k).sum(-1)
    if scaled:
        products = products / math.sqrt(d_k)
    return products.var(correction=0).item()
