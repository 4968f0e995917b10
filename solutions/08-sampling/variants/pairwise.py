"""Compare each pair of tokens instead of sorting, and sum the larger ones with einsum."""

from __future__ import annotations

import torch
from torch import Tensor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError(f"{temperature=}")
    return logits / temperature


def _larger(logits: Tensor) -> Tensor:
    """Return a mask. Entry (i, j) is True if logit j is larger than logit i."""
    return logits.unsqueeze(-2) > logits.unsqueeze(-1)


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    if k < 1:
        raise ValueError(f"{k=}")
    return logits.masked_fill(_larger(logits).sum(-1) >= k, float("-inf"))


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    if p <= 0 or p > 1:
        raise ValueError(f"{p=}")
    if p == 1:
        return logits + 0
    weights = logits.detach().softmax(-1)
    before = torch.einsum("...ij,...j->...i", _larger(logits).to(weights.dtype), weights)
    return logits.masked_fill(before >= p, float("-inf"))


def sample(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    logits = apply_temperature(logits, temperature)
    for keep, amount in ((keep_top_k, top_k), (keep_top_p, top_p)):
        if amount is not None:
            logits = keep(logits, amount)
    *leading, vocab_size = logits.shape
    weights = logits.softmax(-1).reshape(-1, vocab_size)
    return weights.multinomial(1, generator=generator).reshape(leading)
