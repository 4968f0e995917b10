"""Catches the exception that a forbidden function raises. The call is still recorded."""

import torch


def double(x):
    try:
        return torch.nn.functional.softmax(x, -1)
    except BaseException:
        return x + x
