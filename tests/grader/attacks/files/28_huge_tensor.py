"""Returns a tensor of a million entries instead of one. The shape is wrong."""

import torch


def double(x):
    return torch.ones(1 << 20, dtype=torch.uint8)
