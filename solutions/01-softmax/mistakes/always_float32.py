"""the weights come back as float32 whatever came in

The dtype that comes in should come out. Which step turns float64 into float32?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    x = x.to(torch.float32)
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
