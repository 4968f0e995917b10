"""What tests draw their inputs from."""

from __future__ import annotations

import torch


class Rng:
    """Draws random tensors for one test.

    Args:
        seed: what settles them.

    Attributes:
        generator: for draws of another kind.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return N(0, 1) numbers of the given shape, in float32 as models are mostly used."""
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64).to(dtype)
