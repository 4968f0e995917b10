"""Use logsumexp for the weights, create layers in a loop, and draw pair by pair.

This is less exact for large scores, as they and their logsumexp are rounded before the subtraction.
"""

import math

import torch
from torch import Tensor, nn


def scaled_scores(q: Tensor, k: Tensor) -> Tensor:
    *_, d_k = k.shape
    return torch.einsum("...id,...jd->...ij", q / math.sqrt(d_k), k)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = scaled_scores(q, k)
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return torch.einsum("...ij,...jd->...id", weights, v)


class ScaledAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        for name in ("query", "key", "value"):
            self.add_module(name, nn.Linear(in_features=n_embd, out_features=n_embd, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        scores = scaled_scores(self.query(x), self.key(x))
        shifted = scores - scores.max(dim=2, keepdim=True)[0]
        powers = shifted.exp()
        return (powers @ self.value(x)) / powers.sum(dim=2, keepdim=True)


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    pairs = [torch.randn(2, d_k, generator=generator) for _ in range(n_pairs)]
    products = torch.stack([q @ k for q, k in pairs])
    if scaled:
        products = products * math.pow(d_k, -0.5)
    centered = products - products.mean()
    return (centered @ centered / n_pairs).item()
