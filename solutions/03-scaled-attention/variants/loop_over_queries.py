"""Loop over the queries, and draw the pairs one by one."""

import math

import torch
from torch import Tensor, nn


def attend(query: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (k * query.unsqueeze(-2)).sum(-1) / math.sqrt(query.shape[-1])  # (..., m)
    weights = torch.softmax(scores, dim=-1)
    return (weights.unsqueeze(-1) * v).sum(-2)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.stack([attend(query, k, v) for query in q.unbind(-2)], dim=-2)


class ScaledAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    products = []
    for _ in range(n_pairs):
        q = torch.randn(d_k, generator=generator)
        k = torch.randn(d_k, generator=generator)
        product = q.dot(k).item()
        products.append(product / math.sqrt(d_k) if scaled else product)
    mean = sum(products) / n_pairs
    return sum((product - mean) ** 2 for product in products) / n_pairs
