"""the maximum of the whole tensor is subtracted, and not that of each slice

What is left of a row near -1000 when another row is near 1000? Each slice needs a maximum of
its own.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    x = x - x.max()
    e = x.exp()
    return e / e.sum(dim, keepdim=True)
