"""The content of `grader compare 05`, which requires a correct file."""

import torch

from grader.diagnose.numbers import numbers
from shared.probe_weights import attention_weights, filled

STYLES = {
    "loop_over_heads": "Choose it to explain, or if heads differ: each head is a separate "
    "attention on a slice. Only one matrix of scores is in memory at a time.",
    "online_softmax": "Choose it for long texts: it never stores a matrix of T × T scores, which "
    "is the idea of FlashAttention. It is slow in Python, but fast as a GPU kernel.",
}

CALLS = "MultiHeadAttention(24, 4, causal=True) on x of shape (2, 96, 24)"


def cost(problem):
    """Return the function whose cost is measured."""
    module, x = problem.MultiHeadAttention(24, 4, causal=True).eval(), torch.ones(2, 96, 24)
    return lambda: module(x)


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "The same layer is called without a mask (causal=False). What is row 0 of the output, "
            "and which of the six rows does not change?",
            lambda: without_mask(problem),
        ),
        (
            "The same layer has 1, 2 or 4 heads. How many parameters does it have, and does its "
            "output change?",
            lambda: other_heads(problem),
        ),
    ]


def output(problem, n_head, x, *, causal):
    """Return the output of a layer of width 8 with fixed weights for the input x."""
    module = problem.MultiHeadAttention(8, n_head, causal=causal)
    return filled(module, attention_weights(8)).eval()(x.clone())[0]


def without_mask(problem):
    """Return the answer to the first question."""
    x = numbers(1, 6, 8)
    masked, free = (output(problem, 2, x, causal=causal) for causal in (True, False))
    same = ((masked - free).abs().amax(-1) < 1e-9).nonzero().flatten().tolist()
    return (
        f"Row 0 begins with {shown(free[0])} instead of {shown(masked[0])}: token 0 attends to "
        f"all tokens instead of only itself. Row {', '.join(map(str, same))} stays the same, as "
        "the last token attends to all tokens with and without a mask."
    )


def other_heads(problem):
    """Return the answer to the second question."""
    x = numbers(1, 6, 8)
    sizes = {
        sum(parameter.numel() for parameter in problem.MultiHeadAttention(8, n).parameters())
        for n in (1, 2, 4)
    }
    first = ", ".join(f"{output(problem, n, x, causal=False)[0, 0]:.3f}" for n in (1, 2, 4))
    return (
        f"{' or '.join(map(str, sorted(sizes)))} parameters each time, because heads only split "
        f"the layers' outputs. The output changes: its first entry is {first}. With more heads, a "
        "token has more rows of weights, but each head compares shorter vectors."
    )


def shown(row):
    """Return the first three numbers of a row as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row[:3].tolist())}, ...]"
