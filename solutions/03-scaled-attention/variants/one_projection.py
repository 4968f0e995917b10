"""One matrix product makes queries, keys and values; softmax through log_softmax."""

import math

import torch
from torch import Tensor, nn


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.matmul(q, torch.movedim(k, -1, -2)) / math.sqrt(q.size(-1))
    return torch.log_softmax(scores, dim=-1).exp() @ v


class ScaledAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        layers = (self.query, self.key, self.value)
        projected = x @ torch.cat([layer.weight for layer in layers]).t()
        if self.query.bias is not None:
            projected = projected + torch.cat([layer.bias for layer in layers])
        return scaled_dot_product_attention(*projected.chunk(3, dim=-1))


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    q = torch.randn(n_pairs, d_k, generator=generator, dtype=torch.double)
    k = torch.randn(n_pairs, d_k, generator=generator, dtype=torch.double)
    products = (q * k).sum(-1)
    if scaled:
        products = products / math.sqrt(d_k)
    return products.var(correction=0).item()
