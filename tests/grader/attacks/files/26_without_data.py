"""Returns a tensor without data, of the right shape and dtype. There is nothing to be right."""

import torch


def double(x):
    return torch.empty_like(x, device="meta")
