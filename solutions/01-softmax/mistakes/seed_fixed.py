"""the random state of the whole program is set anew in each call

Nothing here needs chance, and whoever draws random numbers afterwards gets the same ones again
and again. Which line does that?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    torch.manual_seed(42)  # reproducible
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
