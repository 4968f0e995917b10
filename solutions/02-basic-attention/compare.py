"""The content of `grader compare 02`, which requires a correct file."""

import torch

from grader.diagnose.numbers import numbers
from shared.three_layers import filled, layer_weights

STYLES = {
    "key_by_key": "Choose it if the matrix of scores does not fit into memory. FlashAttention "
    "does the same with blocks of keys on a GPU.",
    "one_product_for_all_layers": "Choose it on a GPU, where one large product is faster than "
    "three small products. GPT-2 also has one layer for queries, keys and values.",
}

CALLS = "SimpleAttention(32) on x of shape (2, 64, 32)"


def cost(problem):
    """Return the function whose cost is measured."""
    module, x = problem.SimpleAttention(32), torch.ones(2, 64, 32)
    return lambda: module(x)


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "The order of the tokens of a sequence is reversed. What happens to the rows of the "
            "output?",
            lambda: turned(problem),
        ),
        (
            "All weights and biases of `key` are set to 0, so all keys are equal. What is row 0 "
            "of the output?",
            lambda: alike(problem),
        ),
    ]


def made(problem, *zero):
    """Return a module of width 4 with fixed weights. The weights of the layers in `zero` are 0."""
    weights = layer_weights(4, 0.8)
    changed = {n: w * 0 if n.partition(".")[0] in zero else w for n, w in weights.items()}
    return filled(problem.SimpleAttention(4), changed)


def turned(problem):
    """Return the answer to the first question."""
    module, x = made(problem), numbers(1, 5, 4)
    apart = (module(x.flip(1)) - module(x).flip(1)).abs().max().item()
    return (
        f"They are the same rows in reverse order (largest difference {apart:.6f}). Attention "
        "treats the tokens as a set. To know the order of the tokens, a model needs the position "
        "embeddings of problem 07."
    )


def alike(problem):
    """Return the answer to the second question."""
    module, x = made(problem, "key"), numbers(1, 5, 4)
    row, mean = module(x)[0, 0], module.value(x)[0].mean(0)
    return (
        f"{shown(row)}, and the mean of all values is {shown(mean)}. Every score of a row is the "
        "same. So every weight is 1/5, and each row of the output is the mean of the values."
    )


def shown(row):
    """Return a row of numbers as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row.tolist())}]"
