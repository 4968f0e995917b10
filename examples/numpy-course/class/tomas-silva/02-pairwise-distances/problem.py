import numpy as np


def pairwise_distances(a, b):
    if a.shape[1] != b.shape[1]:
        raise ValueError("coordinates")
    difference = b[:, None, :] - a[None, :, :]
    return np.sqrt((difference**2).sum(axis=2))
