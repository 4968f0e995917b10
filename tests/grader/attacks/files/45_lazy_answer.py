"""Returns an object that calls a forbidden function when it is read. The call is still recorded,
and raises an exception.
"""

import torch


class Lazy:
    @property
    def __class__(self):
        torch.softmax(torch.ones(2), -1)
        return torch.Tensor


def double(x):
    return Lazy()
