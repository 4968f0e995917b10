"""Returns the right tensor, as a parameter in a graph. Right is right."""

import torch


def double(x):
    return torch.nn.Parameter(x + x) * 1
