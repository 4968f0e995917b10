"""the numbers change their sign, so that the smallest gets the largest weight

The largest score should get the largest weight. Is the difference taken the right way round?

Weighs: idea of softmax.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    e = torch.exp(x.amin(dim, keepdim=True) - x)
    return e / e.sum(dim, keepdim=True)
