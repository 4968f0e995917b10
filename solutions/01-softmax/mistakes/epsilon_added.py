"""a small number is added to the sum, so that the weights sum to a little less than 1

When the largest exponent of a slice is 0, how small can the sum become? Is the guard still
needed?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


EPS = 1e-8


def softmax(x, dim=-1):
    e = torch.exp(x - torch.amax(x, dim=dim, keepdim=True))
    return e / (e.sum(dim=dim, keepdim=True) + EPS)
