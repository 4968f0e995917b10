"""the exponentials are divided by the sum of the whole tensor, and not by that of their slice

It is right for a single row. What should each row of a matrix sum to?

Weighs: idea.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / torch.sum(e)
