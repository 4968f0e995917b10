"""the sum of an earlier call is used again for numbers of the same shape

The second call has other numbers. What does your code remember, and for whom?
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


_sums = {}


def softmax(x, dim=-1):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    key = (x.shape, x.dtype, dim)
    if key not in _sums:
        _sums[key] = e.sum(dim, keepdim=True).detach()
    return e / _sums[key]
