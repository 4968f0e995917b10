"""Compute float16 in float32 and float32 in float64, and convert the result back."""

import torch

WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
    torch.float64: torch.float64,
}


def dot_product_similarity(q, k):
    wide = WIDER[q.dtype]
    return torch.matmul(q.to(wide), k.to(wide).swapaxes(-1, -2)).to(q.dtype)


def softmax(x, dim=-1):
    z = x.to(WIDER[x.dtype])
    with torch.no_grad():
        m = torch.amax(z, dim=dim, keepdim=True)
    z = z.sub(m).exp()
    return z.div(z.sum(dim=dim, keepdim=True)).to(x.dtype)
