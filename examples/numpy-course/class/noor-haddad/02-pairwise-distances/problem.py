import numpy as np


def pairwise_distances(a, b):
    if a.shape[1] != b.shape[1]:
        raise ValueError("a and b must have as many coordinates as each other")
    return np.linalg.norm(a[:, np.newaxis, :] - b[np.newaxis, :, :], axis=2)
