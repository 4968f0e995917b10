"""the weights sum to 1 along the last dimension whatever dim is

The caller chooses the dimension. Where does your code use dim?

Weighs: idea.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    e = torch.exp(x - x.max(-1, keepdim=True)[0])
    return e / e.sum(-1, keepdim=True)
