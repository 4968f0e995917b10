"""the weights are computed in float32 and then converted back, which loses half the digits of
float64

Converting back restores the dtype but not the digits. For which dtypes does float32 help, and
for which does it harm?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    z = x.float()
    z = torch.exp(z - z.amax(dim, keepdim=True))
    return (z / z.sum(dim, keepdim=True)).to(x.dtype)
