"""What right code of problem 08 gives, for `explore.py`, number by number or by torch itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Return the logits of a bolder or calmer choice."""
    return logits.mul(1 / temperature)


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Return the logits, with -inf for what is not among the k largest."""
    return _by_rows(logits, lambda row: sorted(row, reverse=True)[:k])


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Return the logits, with -inf for what it doesn't take to reach p."""

    def kept(row: list[float]) -> list[float]:
        powers = [math.exp(logit - max(row)) for logit in row]
        left, stay = p * sum(powers), []
        for power, logit in sorted(zip(powers, row, strict=True), reverse=True):
            if left > 0 or p == 1:
                stay.append(logit)
            left -= power
        return stay

    return _by_rows(logits, kept)


def _by_rows(logits: Tensor, kept: Callable[[list[float]], list[float]]) -> Tensor:
    rows = logits.reshape(-1, logits.shape[-1]).tolist()
    smallest = torch.tensor([min(kept(row)) for row in rows], dtype=logits.dtype)
    return torch.where(logits < smallest.reshape(*logits.shape[:-1], 1), -math.inf, logits)


def sample(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return a token for each row, drawn by torch's own distributions, from their own seed."""
    if temperature == 0:
        return logits.max(-1).indices
    steps: tuple[tuple[Callable[..., Tensor], float | None], ...]
    steps = (apply_temperature, temperature), (keep_top_k, top_k), (keep_top_p, top_p)
    for change, size in steps:
        logits = logits if size is None else change(logits, size)
    seed = int(torch.randint(2**31, (), generator=generator))
    before = torch.default_generator.get_state()
    torch.default_generator.manual_seed(seed)
    drawn: Tensor = torch.distributions.Categorical(logits=logits).sample()
    torch.default_generator.set_state(before)
    return drawn
