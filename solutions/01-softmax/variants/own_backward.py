"""Define an autograd function with a hand-written backward pass."""

import torch


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        e = torch.exp(x - x.amax(dim, keepdim=True))
        w = e / e.sum(dim, keepdim=True)
        ctx.save_for_backward(w)
        ctx.dim = dim
        return w

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return w * (g - (w * g).sum(ctx.dim, keepdim=True)), None


def dot_product_similarity(q, k):
    return torch.stack([(q * k[..., j : j + 1, :]).sum(-1) for j in range(k.shape[-2])], dim=-1)


def softmax(x, dim=-1):
    return _Softmax.apply(x, dim)
