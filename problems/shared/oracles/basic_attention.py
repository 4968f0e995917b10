"""Compute the expected results for problem 02: attention without scaling."""

from functools import partial

import torch

from shared.oracles import attention
from shared.worked_example import V

output = partial(attention.self_attention_by_hand, scaled=False)
slopes = partial(attention.self_attention_slopes, scaled=False)

README_OUTPUT = torch.tensor([[[1.5761, 0.0000], [1.1554, -0.2670], [1.5105, -0.1547]]])


def worked_example():
    """Return the output for the worked example: softmax(Q Kᵀ) V, followed by 16 zeros per row."""
    weights = map(attention.softmax_by_hand, attention.SCORES.tolist())
    averages = [attention.average_by_hand(row, V.tolist()) for row in weights]
    return torch.cat([torch.tensor(averages), torch.zeros(4, 16)], dim=-1)[None]
