"""Spoils PyTorch for whoever comes next. Nobody comes next in its process."""

import torch

torch.Tensor.__add__ = torch.Tensor.__mul__ = lambda self, other: self.zero_()
torch.set_default_dtype(torch.float16)


def double(x):
    return x + x
