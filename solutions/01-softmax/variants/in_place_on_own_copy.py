"""A copy of x is changed in place, under autograd's eyes; -inf is set to 0 by hand."""

import torch


def dot_product_similarity(q, k, scale=None):
    out = torch.matmul(k, q.transpose(-2, -1)).transpose(-2, -1).clone()
    if scale is not None:
        out *= scale
    return out


def softmax(x, dim=-1, temperature=1.0):
    z = x.clone()
    z /= temperature
    z -= z.amax(dim=dim, keepdim=True).detach()
    e = z.exp()
    e = e.masked_fill(x == -float("inf"), 0.0)
    # a slice of nothing but -inf: 0 / 0 is NaN
    return e / e.sum(dim=dim, keepdim=True)
