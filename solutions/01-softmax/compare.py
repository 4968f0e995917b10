"""The content of `grader compare 01`, which a correct file unlocks."""

import torch

from grader.diagnose.numbers import numbers

STYLES = {
    "log_weights_then_exp": "Choose it where a loss needs the logarithms anyway, or where heads "
    "and batches are to become one product.",
    "einsum_and_movedim": "Choose it where there are many dimensions: the letters say which one "
    "is summed, and only the last one needs a softmax.",
}

CALLS = "softmax(dot_product_similarity(q, k)) with 64 queries and 64 keys of dimension 32"


def cost(problem):
    """Return the calls to measure."""
    q, k = numbers(64, 32), numbers(64, 32, start=0.5)
    return lambda: problem.softmax(problem.dot_product_similarity(q, k))


def questions(problem):
    """Return the questions, each with the function that computes its answer."""
    return [
        (
            "The softmax of the scores [4, 5] is [0.2689, 0.7311]. What do the weights become when "
            "1000 is added to both scores?",
            lambda: added(problem),
        ),
        (
            "The scores [1, 2, 3] become ten times as large. What do their weights become?",
            lambda: ten_times(problem),
        ),
    ]


def added(problem):
    """Answer the first question."""
    weights = shown(problem.softmax(torch.tensor([1004.0, 1005.0], dtype=torch.float64)))
    return (
        f"{weights}, as before. e¹⁰⁰⁰ is a factor of every power and of their sum, so it "
        "cancels. That is why the largest score may be subtracted first."
    )


def ten_times(problem):
    """Answer the second question."""
    scores = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    before, after = shown(problem.softmax(scores)), shown(problem.softmax(10 * scores))
    return (
        f"{after}, where they were {before}. Only differences count, and these are ten times as "
        "large now: one score takes nearly all the weight, and nearly no gradient is left."
    )


def shown(weights):
    """Weights as text."""
    return f"[{', '.join(f'{weight:.4f}' for weight in weights.tolist())}]"
