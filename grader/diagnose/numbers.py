"""Provide the inputs of probes, which are the same numbers on every machine and in every run."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

_MOST_ENTRIES = 4096
"""The maximum number of entries of a cached tensor. Student code may need larger tensors."""


def numbers(*shape: int, start: float = 0.0, size: float = 1.5) -> Tensor:
    """Return a float64 tensor of fixed numbers that look random.

    Args:
        shape: the shape of the tensor.
        start: a phase. Different phases give different numbers.
        size: the largest absolute value.
    """
    made = _made if math.prod(shape) > _MOST_ENTRIES else _kept
    return made(shape, start, size).clone()  # student code may change its arguments


def _made(shape: tuple[int, ...], start: float, size: float) -> Tensor:
    steps = torch.arange(math.prod(shape), dtype=torch.float64, device="cpu")
    return (size * torch.sin(0.37 * steps * steps + 1.7 * steps + start)).reshape(shape)


_kept = lru_cache(maxsize=1000)(_made)
