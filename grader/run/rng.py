"""Random number generators for the inputs of tests."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from torch import Tensor

from grader.code.tensors import Array


def rng_for(values: str, seed: int) -> Rng | ArrayRng:
    """Return the random number generator of a test.

    Args:
        values: the course's library, one of `course.VALUES`.
        seed: the seed.
    """
    return ArrayRng(seed) if values == "numpy" else Rng(seed)


class Rng:
    """Draws random tensors for one test.

    Args:
        seed: the seed.

    Attributes:
        generator: the `torch.Generator`, for other distributions.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return a tensor of N(0, 1) numbers with this shape; by default in float32."""
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64).to(dtype)

    def independent(self) -> Rng:
        """Return an independent generator whose seed is drawn from this generator."""
        return Rng(int(torch.randint(1 << 62, (), generator=self.generator)))


class ArrayRng:
    """Draws random arrays for one test of a course that uses NumPy.

    Args:
        seed: the seed.

    Attributes:
        generator: the `numpy.random.Generator`, for other distributions.
    """

    def __init__(self, seed: int) -> None:
        self.generator = numpy.random.default_rng(seed)

    def normal(self, *shape: int, dtype: Any = numpy.float64) -> Array:
        """Return an array of N(0, 1) numbers with this shape; by default in float64."""
        return self.generator.standard_normal(shape).astype(dtype)

    def independent(self) -> ArrayRng:
        """Return an independent generator whose seed is drawn from this generator."""
        return ArrayRng(int(self.generator.integers(1 << 62)))
