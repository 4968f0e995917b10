"""Returns an object whose `__class__` is Tensor. The object isn't recorded as a tensor."""

import torch


class Liar:
    __class__ = torch.Tensor
    dtype, shape, requires_grad = torch.float32, torch.Size([1]), False

    def __getattr__(self, name):
        return lambda *_, **__: self


def double(x):
    return Liar()
