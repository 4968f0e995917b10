"""Loop over queries and keys, and stack the results. The layers are also in a dict."""

import math

import torch
from torch import Tensor, nn


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if q.dim() > 2:
        rows = [scaled_dot_product_attention(*matrices) for matrices in zip(q, k, v)]
        return torch.stack(rows)
    mixtures = []
    for query in q:
        scores = torch.stack([torch.dot(query, key) for key in k]) / math.sqrt(len(query))
        mixtures.append(sum(w * value for w, value in zip(scores.softmax(0), v)))
    return torch.stack(mixtures)


class ScaledAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        names = ("query", "key", "value")
        self.layers = nn.ModuleDict({n: nn.Linear(n_embd, n_embd, bias=bias) for n in names})
        for name, layer in self.layers.items():
            setattr(self, name, layer)

    def forward(self, x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        for b in range(x.shape[0]):
            out[b] = scaled_dot_product_attention(*(layer(x[b]) for layer in self.layers.values()))
        return out


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    q = torch.randn(n_pairs, d_k, generator=generator)
    k = torch.randn(n_pairs, d_k, generator=generator)
    products = (q * k).sum(-1)
    if scaled:
        products = products / math.sqrt(d_k)
    return products.var(correction=0).tolist()
