"""somewhere the scores become float32, whatever came in

A new tensor has a dtype of its own unless it is told one. Which dtype came in?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    n, m = q.shape[-2], k.shape[-2]
    scores = torch.zeros(*q.shape[:-2], n, m)
    for i in range(n):
        for j in range(m):
            scores[..., i, j] = (q[..., i, :] * k[..., j, :]).sum(-1)
    return scores


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
