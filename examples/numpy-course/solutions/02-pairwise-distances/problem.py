"""The reference solution of problem 02."""

import numpy as np


def pairwise_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the Euclidean distance of each point of a to each point of b."""
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"points of {a.shape[-1]} and of {b.shape[-1]} coordinates")
    difference = a[:, None] - b[None]
    return np.sqrt((difference**2).sum(axis=-1))
