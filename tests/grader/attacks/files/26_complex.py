"""Returns a complex tensor with the right numbers. It isn't of the right dtype."""

import torch


def double(x):
    return (x + x).to(torch.complex64)
