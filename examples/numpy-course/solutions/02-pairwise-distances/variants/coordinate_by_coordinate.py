import numpy as np


def pairwise_distances(a, b):
    n, d = a.shape
    m, other = b.shape
    if d != other:
        raise ValueError(f"{d} coordinates and {other}")
    squares = np.zeros((n, m), dtype=a.dtype)
    for k in range(d):
        squares += np.subtract.outer(a[:, k], b[:, k]) ** 2
    return np.sqrt(squares)
