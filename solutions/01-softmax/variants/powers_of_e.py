"""Raise math.e to a tensor. Find the maximum by sorting, and restore dimensions with unsqueeze."""

import math

import torch
from torch import Tensor


def dot_product_similarity(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("...ij,...kj", q, k) if q.dim() == 2 else q.matmul(k.mT)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    largest = torch.sort(x, dim=dim, descending=True).values.select(dim, 0).unsqueeze(dim)
    exponentials = math.e ** (x - largest)
    total = exponentials.sum(dim).unsqueeze(dim)
    return exponentials * total.reciprocal()
