"""The content of `grader compare 04`, which requires a correct file."""

import torch

from grader.diagnose.numbers import numbers
from shared.oracles.attention import SCALED_SCORES
from shared.three_layers import filled, layer_weights
from shared.worked_example import V

STYLES = {
    "prefix_by_prefix": "Choose it to explain: it computes no score of a later position, which "
    "saves half of the scores. But the loop in Python costs more time than this saves.",
    "online_softmax": "Choose it if the matrix of scores does not fit into memory: it reads one "
    "key at a time and stores only a running maximum and sum of each row.",
}

CALLS = "CausalAttention(32, n_positions=64) on x of shape (2, 64, 32)"


def cost(problem):
    """Return the function whose cost is measured."""
    module, x = problem.CausalAttention(32, 64), torch.ones(2, 64, 32)
    return lambda: module(x)


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "In the worked example, row 0 of the causal output is row 0 of V, "
            "[-1.205, -0.781, -0.606, ...]. What is it if all entries of the mask are "
            "True?",
            lambda: without_mask(problem),
        ),
        (
            "You replace the last of six tokens. Which rows of the output change?",
            lambda: last_token(problem),
        ),
    ]


def without_mask(problem):
    """Return the answer to the first question."""
    mask = torch.ones_like(SCALED_SCORES, dtype=torch.bool)
    weights = problem.masked_softmax(SCALED_SCORES.double(), mask)[0]
    row = weights @ V.double()
    return (
        f"{shown(row[:3])[:-1]}, ...]. Token 0 attends to all four keys, with the weights "
        f"{shown(weights)}. It uses tokens that a language model should predict."
    )


def last_token(problem):
    """Return the answer to the second question."""
    module = filled(problem.CausalAttention(4, 8), layer_weights(4, 0.8))
    x = numbers(1, 6, 4)
    other = torch.cat([x[:, :-1], -x[:, -1:]], dim=1)
    changed = (module(x) - module(other)).abs().amax(-1)[0] > 1e-9
    rows = ", ".join(map(str, changed.nonzero().flatten().tolist()))
    return (
        f"Row {rows} only. No other row depends on the last token. So one pass over a text trains "
        "a model on every position, and problem 09 can store the keys and values of past tokens."
    )


def shown(row):
    """Return a row of numbers as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row.tolist())}]"
