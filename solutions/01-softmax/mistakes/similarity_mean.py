"""the products are averaged over d, and not summed

What does a dot product do with the d products of two vectors?

Weighs: idea of dot_product_similarity.
"""

import torch


def dot_product_similarity(q, k):
    return (q.unsqueeze(-2) * k.unsqueeze(-3)).mean(dim=-1)


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
