"""Generate deterministic input numbers for probes, and cache small tensors."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

_MOST_ENTRIES = 4096
"""Larger tensors are not cached, because a student may choose their size."""


def numbers(*shape: int, start: float = 0.0, size: float = 1.5) -> Tensor:
    """Return float64 numbers that look random but are deterministic.

    Args:
        shape: the shape of the tensor.
        start: a seed; other values give other numbers.
        size: the numbers lie between `-size` and `size`.
    """
    made = _made if math.prod(shape) > _MOST_ENTRIES else _kept
    return made(shape, start, size).clone()  # the called code may change its input in place


def _made(shape: tuple[int, ...], start: float, size: float) -> Tensor:
    steps = torch.arange(math.prod(shape), dtype=torch.float64, device="cpu")
    return (size * torch.sin(0.37 * steps * steps + 1.7 * steps + start)).reshape(shape)


_kept = lru_cache(maxsize=1000)(_made)
