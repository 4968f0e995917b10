"""The content of `grader compare 04`, which a correct file unlocks."""

import torch

from grader.diagnose.numbers import numbers
from shared.oracles.attention import SCALED_SCORES
from shared.three_layers import filled, layer_weights
from shared.worked_example import V

STYLES = {
    "prefix_by_prefix": "Choose it to explain: no score of the future is computed at all, which "
    "saves half of the scores, but a loop in Python costs more time than that saves.",
    "online_softmax": "Choose it where the table of scores would not fit into memory: keys come "
    "one by one, and a running maximum and sum replace the whole row.",
}

CALLS = "CausalAttention(32, n_positions=64) on x of shape (2, 64, 32)"


def cost(problem):
    """Return the calls to measure."""
    module, x = problem.CausalAttention(32, 64), torch.ones(2, 64, 32)
    return lambda: module(x)


def questions(problem):
    """Return the questions, each with the function that computes its answer."""
    return [
        (
            "In the worked example, row 0 of the causal output is row 0 of V, "
            "[-1.205, -0.781, -0.606, ...]. What is it if the mask goes, that is, if all of it is "
            "True?",
            lambda: without_mask(problem),
        ),
        (
            "You replace the last of six tokens by another. Which rows of the output change?",
            lambda: last_token(problem),
        ),
    ]


def without_mask(problem):
    """Answer the first question."""
    mask = torch.ones_like(SCALED_SCORES, dtype=torch.bool)
    weights = problem.masked_softmax(SCALED_SCORES.double(), mask)[0]
    row = weights @ V.double()
    return (
        f"{shown(row[:3])[:-1]}, ...]. Token 0 now sees all four keys, with the weights "
        f"{shown(weights)}, and gathers from tokens that a language model has yet to guess."
    )


def last_token(problem):
    """Answer the second question."""
    module = filled(problem.CausalAttention(4, 8), layer_weights(4, 0.8))
    x = numbers(1, 6, 4)
    other = torch.cat([x[:, :-1], -x[:, -1:]], dim=1)
    changed = (module(x) - module(other)).abs().amax(-1)[0] > 1e-9
    rows = ", ".join(map(str, changed.nonzero().flatten().tolist()))
    return (
        f"Row {rows} only. All others never see the last token. So one pass over a text trains a "
        "model on every position at once, and problem 09 can keep the keys and values of the past."
    )


def shown(row):
    """A row of numbers as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row.tolist())}]"
