"""The numbers that probes ask with: the same everywhere and each time, and made only once."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

_MOST_ENTRIES = 4096
"""Larger tensors are made anew each time: their size may be a student's own."""


def numbers(*shape: int, start: float = 0.0, size: float = 1.5) -> Tensor:
    """Return numbers in float64 that look random and need no chance.

    Args:
        shape: of the tensor.
        start: another one gives other numbers.
        size: they lie between this and its opposite.
    """
    made = _made if math.prod(shape) > _MOST_ENTRIES else _kept
    return made(shape, start, size).clone()  # code may change what it is given


def _made(shape: tuple[int, ...], start: float, size: float) -> Tensor:
    steps = torch.arange(math.prod(shape), dtype=torch.float64, device="cpu")
    return (size * torch.sin(0.37 * steps * steps + 1.7 * steps + start)).reshape(shape)


_kept = lru_cache(maxsize=1000)(_made)
