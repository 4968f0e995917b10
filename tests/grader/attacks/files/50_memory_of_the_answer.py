"""Leaves no memory for sending its answer. The result is bad output."""

import torch

KEPT = []


def double(x):
    answer = torch.zeros(16_000_000)
    for size in (16_000_000, 1_000_000):
        while True:
            try:
                KEPT.append(torch.ones(size))
            except RuntimeError:
                break
    return answer
