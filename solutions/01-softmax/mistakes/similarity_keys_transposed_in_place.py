"""the keys that were passed in are themselves transposed, so that the caller finds them changed

Methods whose names end with an underscore change the tensor itself. Who else may hold these
keys?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    k.transpose_(-2, -1)
    return q @ k


def softmax(x, dim=-1):
    exps = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)
