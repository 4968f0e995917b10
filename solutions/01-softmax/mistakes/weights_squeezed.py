"""dimensions of size 1 are removed from the weights

The shape should come out as it went in, a column of shape (4, 1) too. Which call drops a
dimension?
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    z = torch.exp(x - x.amax(dim, keepdim=True))
    return (z / z.sum(dim, keepdim=True)).squeeze()
