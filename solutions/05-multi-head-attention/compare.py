"""The content of `grader compare 05`, which a correct file unlocks."""

import torch

from grader.diagnose.numbers import numbers
from shared.probe_weights import attention_weights, filled

STYLES = {
    "loop_over_heads": "Choose it to explain, or where heads differ: each is a separate "
    "attention on a slice. The tables of scores are there one at a time.",
    "online_softmax": "Choose it for long texts: no table of T × T scores is ever there, which is "
    "the idea of FlashAttention. In Python it is slow; in a GPU's own code it wins.",
}

CALLS = "MultiHeadAttention(24, 4, causal=True) on x of shape (2, 96, 24)"


def cost(problem):
    """Return the calls to measure."""
    module, x = problem.MultiHeadAttention(24, 4, causal=True).eval(), torch.ones(2, 96, 24)
    return lambda: module(x)


def questions(problem):
    """Return the questions, each with the function that computes its answer."""
    return [
        (
            "The mask goes: the same weights, and causal=False instead of True. What becomes of "
            "row 0 of the output, and which of the six rows stays what it was?",
            lambda: without_mask(problem),
        ),
        (
            "The same layer with 1, 2 or 4 heads: how many parameters does it have, and does its "
            "output change?",
            lambda: other_heads(problem),
        ),
    ]


def output(problem, n_head, x, *, causal):
    """Return the output for x of a layer of width 8 with fixed weights."""
    module = problem.MultiHeadAttention(8, n_head, causal=causal)
    return filled(module, attention_weights(8)).eval()(x.clone())[0]


def without_mask(problem):
    """Answer the first question."""
    x = numbers(1, 6, 8)
    masked, free = (output(problem, 2, x, causal=causal) for causal in (True, False))
    same = ((masked - free).abs().amax(-1) < 1e-9).nonzero().flatten().tolist()
    return (
        f"Row 0 begins with {shown(free[0])} instead of {shown(masked[0])}: it no longer copies "
        f"its own value, but gathers from all tokens. Row {', '.join(map(str, same))} stays, as "
        "the last token has always seen everything."
    )


def other_heads(problem):
    """Answer the second question."""
    x = numbers(1, 6, 8)
    sizes = {
        sum(parameter.numel() for parameter in problem.MultiHeadAttention(8, n).parameters())
        for n in (1, 2, 4)
    }
    first = ", ".join(f"{output(problem, n, x, causal=False)[0, 0]:.3f}" for n in (1, 2, 4))
    return (
        f"{' or '.join(map(str, sorted(sizes)))} parameters each time: heads only cut the "
        f"layers' outputs. The output changes, its first entry is {first}: with more heads a token "
        "has more rows of weights, each of which sums to 1, but each compares shorter vectors."
    )


def shown(row):
    """The first numbers of a row as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row[:3].tolist())}, ...]"
