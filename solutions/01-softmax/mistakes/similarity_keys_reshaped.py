"""the keys are reshaped to (d, m), which moves their numbers to other keys, in place of transposed

Both have the same shape but not the same numbers. Try reshape and transpose on [[1, 2], [3,
4]].

Weighs: idea of dot_product_similarity.
"""

import torch


def dot_product_similarity(q, k):
    *batch, m, d = k.shape
    return q @ k.reshape(*batch, d, m)


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
