import numpy as np


def pairwise_distances(a, b):
    if a.shape[1] != b.shape[1]:
        raise ValueError("a and b have other numbers of coordinates")
    distances = np.empty((len(a), len(b)), dtype=a.dtype)
    for i, p in enumerate(a):
        for j, q in enumerate(b):
            distances[i, j] = np.linalg.norm(p - q)
    return distances
