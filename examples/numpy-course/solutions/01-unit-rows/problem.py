"""The reference solution of problem 01."""

import numpy as np


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Return x with each row divided by its Euclidean norm."""
    largest = np.abs(x).max(axis=-1, keepdims=True)
    scaled = x / np.where(largest == 0, 1, largest)
    norm = np.sqrt((scaled * scaled).sum(axis=-1, keepdims=True))
    return scaled / np.where(norm == 0, 1, norm)
