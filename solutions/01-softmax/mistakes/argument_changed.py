"""the maximum is subtracted from the caller's own tensor

What does the caller find in x afterwards? Look for -= and for methods whose names end with an
underscore.

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    x -= x.amax(dim, keepdim=True)
    e = torch.exp(x)
    return e / e.sum(dim, keepdim=True)
