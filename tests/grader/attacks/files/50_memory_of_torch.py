"""Asks PyTorch for a terabyte at once. Out of memory."""

import torch


def double(x):
    return torch.ones(10**12)
