"""02: Pairwise distances."""

import numpy as np


def pairwise_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the Euclidean distance of each point of a to each point of b.

    Args:
        a: of shape (n, d), a point in each row.
        b: of shape (m, d).

    Returns:
        Distances of shape (n, m), in the dtype of a and b.

    Raises:
        ValueError: a and b differ in d.
    """
    raise NotImplementedError
