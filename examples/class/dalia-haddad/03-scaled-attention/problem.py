import math

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = torch.softmax(scores / math.sqrt(q.size(-1)), dim=-1)
    return weights @ v


class ScaledAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        # TODO
        raise NotImplementedError


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    raise NotImplementedError
