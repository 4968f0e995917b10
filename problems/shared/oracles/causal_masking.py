"""Compute the expected results for problem 04, and judge masks and masked weights."""

from functools import partial

import torch

from grader.run.compare import check, require
from shared.oracles import attention

WEIGHTS, OUTPUT = attention.CAUSAL_WEIGHTS, attention.CAUSAL_OUTPUT

output = partial(attention.self_attention_by_hand, causal=True)
slopes = partial(attention.self_attention_slopes, causal=True)


def causal_mask(seq_len):
    """Return the causal mask, a bool tensor: entry (i, j) is True where j <= i."""
    return torch.tensor([[j <= i for j in range(seq_len)] for i in range(seq_len)])


def masked_softmax(scores, mask):
    """Return the softmax of the allowed scores of each row; the weight of masked scores is 0."""
    rows = scores.detach().double().reshape(-1, scores.shape[-1]).tolist()
    allowed = mask.broadcast_to(scores.shape).reshape(-1, scores.shape[-1]).tolist()
    weights = [masked_row_by_hand(*row) for row in zip(rows, allowed, strict=True)]
    return torch.tensor(weights, dtype=torch.float64).reshape(scores.shape).to(scores.dtype)


def masked_row_by_hand(row, allowed):
    """Apply `masked_softmax` to one row, given as lists of scores and bools."""
    pairs = zip(row, allowed, strict=True)
    weights = iter(attention.softmax_by_hand([score for score, may in pairs if may]))
    return [next(weights) if may else 0.0 for may in allowed]


def masked_softmax_gradient(scores, mask, upstream):
    """Return the gradient of `masked_softmax` with respect to the scores.

    In each row it is w_i (g_i - sum_j w_j g_j), with the weights w and the upstream gradient g.
    """
    weights = masked_softmax(scores, mask)
    return {"scores": weights * (upstream - (weights * upstream).sum(-1, keepdim=True))}


def are_weights(actual, call, expected, mask, near):
    """Require correct weights, and the weight 0 for each masked entry."""
    check(actual, expected, call, **near)
    masked = actual[~mask.broadcast_to(actual.shape)]
    require((masked == 0).all(), f"{call}\nThe weight of a masked entry should be exactly 0.")


def is_mask(actual, call, expected):
    """Require a correct mask. The numbers 0 and 1 are accepted: another test checks the dtype."""
    is_number = isinstance(actual, torch.Tensor) and ((actual == 0) | (actual == 1)).all()
    check(actual.bool() if is_number else actual, expected, call)


def default_positions(default, call):
    """Require that the default number of positions is 1024."""
    require(default == 1024, f"{call}\nIt has {default} positions; expected 1024.")
