"""the caller's own tensor is changed when it is float32 already, and float64 is cut to float32

float() makes a copy only when it has something to convert. What do the lines after it change
then?

Weighs: slip.
"""

import torch


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    dtype = x.dtype
    with torch.no_grad():
        largest = x.amax(dim, keepdim=True).float()
    x = x.float()
    if not x.requires_grad:
        x.sub_(largest).exp_()  # save memory
    else:
        x = (x - largest).exp()
    return (x / x.sum(dim, keepdim=True)).to(dtype)
