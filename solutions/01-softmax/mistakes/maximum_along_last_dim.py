"""the maximum is taken along the last dimension whatever dim is

Within a slice the same number must be subtracted everywhere, or it does not cancel. Along which
dimension do slices lie?
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    largest = x.max(dim=-1, keepdim=True).values
    e = torch.exp(x - largest)
    return e / e.sum(dim=dim, keepdim=True)
