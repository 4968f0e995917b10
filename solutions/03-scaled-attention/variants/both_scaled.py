"""Scale queries and keys by the fourth root of d_k, which is a tensor of their dtype."""

import math

import torch
from torch import Tensor, nn


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    root = torch.tensor(q.shape[-1], dtype=q.dtype, device=q.device).pow(0.25)
    scores = torch.matmul(q / root, (k / root).swapaxes(-1, -2))
    return torch.softmax(scores, dim=-1).matmul(v)


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
    pairs = torch.randn(n_pairs, 2, d_k, generator=generator, dtype=torch.float64)
    products = pairs.prod(dim=1).sum(dim=1)
    if scaled:
        products /= math.sqrt(d_k)
    return torch.var_mean(products, correction=0)[0].item()
