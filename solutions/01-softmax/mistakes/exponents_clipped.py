"""very negative exponents are cut to a limit, so that -inf gets a small weight and not exactly 0

exp of -inf is exactly 0 without any help. What is exp of the limit?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    z = x - x.max(dim=dim, keepdim=True).values
    z = z.clamp(min=-50)
    z = z.exp()
    return z / z.sum(dim=dim, keepdim=True)
