"""Modifies PyTorch for later submissions. No other submission runs in its process."""

import torch

torch.Tensor.__add__ = torch.Tensor.__mul__ = lambda self, other: self.zero_()
torch.set_default_dtype(torch.float16)


def double(x):
    return x + x
