"""the keys have their dimensions 0 and 1 swapped, and not their last two

It is right for a single matrix. In a batch, what do the dimensions 0 and 1 stand for?
"""

import torch


def dot_product_similarity(q, k):
    k_t = torch.transpose(k, 0, 1)
    return torch.matmul(q, k_t)


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
