"""half precision is computed in float32, and the result is never converted back

Computing in float32 is a good idea there. Which dtype should come out?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    if x.dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
