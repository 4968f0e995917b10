"""every dim but 0 is taken for the last one, as if there were only two dimensions

It is right for a matrix. What do dim=1 and dim=-2 mean for a tensor of shape (2, 3, 4)?
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    if dim == 0:
        e = torch.exp(x - x.amax(0, keepdim=True))
        return e / e.sum(0, keepdim=True)
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)
