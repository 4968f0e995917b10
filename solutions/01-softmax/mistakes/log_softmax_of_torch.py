"""PyTorch's own softmax is called, or another function that contains it

The numbers are right, but writing softmax is the task. The README names what may not be called.

Weighs: idea of softmax.
"""

import torch
from torch import nn


def dot_product_similarity(q, k):
    return q @ k.transpose(-2, -1)


def softmax(x, dim=-1):
    log_weights = nn.LogSoftmax(dim=dim)(x)
    return torch.exp(log_weights)
