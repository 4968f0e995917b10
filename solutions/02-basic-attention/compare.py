"""The content of `grader compare 02`, which a correct file unlocks."""

import torch

from grader.diagnose.numbers import numbers
from shared.three_layers import filled, layer_weights

STYLES = {
    "key_by_key": "Choose it where the table of scores would not fit into memory: FlashAttention "
    "does this with blocks of keys, inside the GPU.",
    "one_product_for_all_layers": "Choose it on a GPU, where one large product is faster than "
    "three small ones; GPT-2 has one layer for all three from the start.",
}

CALLS = "SimpleAttention(32) on x of shape (2, 64, 32)"


def cost(problem):
    """Return the calls to measure."""
    module, x = problem.SimpleAttention(32), torch.ones(2, 64, 32)
    return lambda: module(x)


def questions(problem):
    """Return the questions, each with the function that computes its answer."""
    return [
        (
            "The tokens of a sequence change places: the last one comes first, and so on. What "
            "happens to the rows of the output?",
            lambda: turned(problem),
        ),
        (
            "All weights and biases of `key` become 0, so that all keys are alike. What is row 0 "
            "of the output?",
            lambda: alike(problem),
        ),
    ]


def made(problem, *zero):
    """Return a module of width 4 with fixed weights; those of the layers in `zero` are 0."""
    weights = layer_weights(4, 0.8)
    changed = {n: w * 0 if n.partition(".")[0] in zero else w for n, w in weights.items()}
    return filled(problem.SimpleAttention(4), changed)


def turned(problem):
    """Answer the first question."""
    module, x = made(problem), numbers(1, 5, 4)
    apart = (module(x.flip(1)) - module(x).flip(1)).abs().max().item()
    return (
        f"They change places in the same way, and do not change (largest difference "
        f"{apart:.6f}). Attention sees a set of tokens: to know their order, a model "
        "needs the position embeddings of problem 07."
    )


def alike(problem):
    """Answer the second question."""
    module, x = made(problem, "key"), numbers(1, 5, 4)
    row, mean = module(x)[0, 0], module.value(x)[0].mean(0)
    return (
        f"{shown(row)}, and the mean of all values is {shown(mean)}. Every score of a row is the "
        "same, so every weight is 1/5, and each row is the mean of the values."
    )


def shown(row):
    """A row of numbers as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row.tolist())}]"
