"""Change a copy of x in place, which autograd supports. The weight of an entry -inf is 0."""

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
    # a slice whose entries are all -inf has the result 0 / 0 = NaN
    return e / e.sum(dim=dim, keepdim=True)
