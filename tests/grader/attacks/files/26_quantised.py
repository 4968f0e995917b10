"""Returns a quantised tensor. It isn't of the right dtype."""

import torch


def double(x):
    return torch.quantize_per_tensor((x + x).float(), 0.1, 0, torch.qint8)
