"""Returns a tensor of a million entries where one was asked for. The shape is wrong."""

import torch


def double(x):
    return torch.ones(1 << 20, dtype=torch.uint8)
