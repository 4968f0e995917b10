"""softmax as exp(x - log sum exp), with a hand-written log-sum-exp; broadcast products for scores.

Less exact where numbers are large: x and its log-sum-exp are rounded before they are subtracted.
"""

import torch


def dot_product_similarity(q, k):
    return (q[..., :, None, :] * k[..., None, :, :]).sum(-1)


def log_sum_exp(x, dim):
    m = x.amax(dim, keepdim=True)
    return m + (x - m).exp().sum(dim, keepdim=True).log()


def softmax(x, dim: int = -1):
    return (x - log_sum_exp(x, dim)).exp()
