"""the default of dim is 0, the first dimension, and not the last

Look at the signature in the task: along which dimension do the weights sum to 1 when nobody
says?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=0):
    e = torch.exp(x - x.max(dim, keepdim=True)[0])
    return e / e.sum(dim, keepdim=True)
