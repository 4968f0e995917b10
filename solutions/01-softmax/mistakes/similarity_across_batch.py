"""the queries of each batch entry are scored against the keys of all of them

Each matrix of a batch stands for a text of its own. Which shape should come out for q of shape
(3, 5, 4)?
"""

import torch


def dot_product_similarity(q, k):
    return torch.inner(q, k)


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
