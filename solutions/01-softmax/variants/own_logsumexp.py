"""Compute softmax as exp(x - logsumexp), with a hand-written logsumexp. Broadcast the scores.

This is less exact for large numbers, as x and its logsumexp are rounded before the subtraction.
"""

import torch


def dot_product_similarity(q, k):
    return (q[..., :, None, :] * k[..., None, :, :]).sum(-1)


def log_sum_exp(x, dim):
    m = x.amax(dim, keepdim=True)
    return m + (x - m).exp().sum(dim, keepdim=True).log()


def softmax(x, dim: int = -1):
    return (x - log_sum_exp(x, dim)).exp()
