"""Calls a forbidden function when its answer is looked at. It is noticed, and gives no answer."""

import torch


class Lazy:
    @property
    def __class__(self):
        torch.softmax(torch.ones(2), -1)
        return torch.Tensor


def double(x):
    return Lazy()
