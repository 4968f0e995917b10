"""the weights are made with powers of 2 in place of powers of e

Which base does the formula name? The weights of [4, 5] should be 26.89 % and 73.11 %.

Weighs: idea of softmax.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    z = 2 ** (x - x.amax(dim, keepdim=True))
    return z / z.sum(dim, keepdim=True)
