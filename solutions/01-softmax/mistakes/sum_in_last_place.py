"""the sum gets its missing dimension back in the last place, whatever dim is

It is right along the last dimension. Where must the dimension of size 1 stand when dim is 0?
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    e = torch.exp(x - x.amax(dim=dim).unsqueeze(-1))
    total = e.sum(dim=dim).unsqueeze(-1)
    return e / total
