"""Write the softmax by hand, and use statistics.pvariance."""

import math
import statistics

import torch
from torch import Tensor, nn


def softmax(x: Tensor) -> Tensor:
    e = (x - x.max(dim=-1, keepdim=True).values.detach()).exp()
    return e / e.sum(dim=-1, keepdim=True)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q.matmul(k.transpose(-2, -1)).div(math.sqrt(k.size(-1)))
    return softmax(scores).matmul(v)


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
    q = torch.randn(n_pairs, d_k, generator=generator)
    k = torch.randn(n_pairs, d_k, generator=generator)
    products = torch.linalg.vecdot(q, k)
    if scaled:
        products = products * (1 / math.sqrt(d_k))
    return statistics.pvariance(products.tolist())
