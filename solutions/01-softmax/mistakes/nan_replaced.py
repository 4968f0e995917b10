"""NaN is replaced by 0, which hides that a slice of -inf has no weights at all

In such a slice there is nothing to choose from. Should the caller notice that, or get weights
that do not sum to 1?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return torch.nan_to_num(e / e.sum(dim, keepdim=True), nan=0.0)
