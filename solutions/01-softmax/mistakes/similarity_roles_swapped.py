"""each key is scored against every query, so that rows belong to keys and columns to queries

Which of the two should the rows stand for? Follow the letters n and m from q and k to the
scores.

Weighs: idea of dot_product_similarity.
"""

import torch


def dot_product_similarity(q, k):
    # n queries, m keys
    return torch.einsum("...nd,...md->...mn", q, k)


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
