"""Tries to use the memory of a graphics card. No card is visible in its process."""

import torch


def double(x):
    kept = torch.empty(1 << 30, device="cuda")
    return x + x if len(kept) else None
