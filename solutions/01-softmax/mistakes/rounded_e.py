"""e, or a logarithm that stands for it, is written out to a few digits only, as in 2.718

The error grows with the exponent. Where could you get e, or better its powers, in full
precision?
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


e = 2.718


def softmax(x, dim=-1):
    powers = e ** (x - x.max(dim=dim, keepdim=True).values)
    return powers / powers.sum(dim=dim, keepdim=True)
