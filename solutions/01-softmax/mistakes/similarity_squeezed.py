"""dimensions of size 1 are removed from the scores

A batch of one is still a batch. Which call drops a dimension that you did not mean?
"""

import torch


def dot_product_similarity(q, k):
    # (..., n, 1, d) * (..., 1, m, d)
    products = q.unsqueeze(-2) * k.unsqueeze(-3)
    return products.sum(dim=-1, keepdim=True).squeeze()


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
