"""the maximum or 0 is subtracted, whichever is larger, and a slice near -1000 gives 0/0

exp fails on both sides: what is the sum of the exponentials of numbers that are all near -1000?
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    largest = x.max(dim=dim, keepdim=True)[0]
    exps = torch.exp(x - largest.clamp(min=0))  # avoid overflow
    return exps / exps.sum(dim=dim, keepdim=True)
