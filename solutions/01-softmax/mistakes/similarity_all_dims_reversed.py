"""the keys are transposed with .T, which reverses all dimensions and not only the last two

It is right for a single matrix. What shape does .T give to a batch of shape (2, 5, 4)?
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.T


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
