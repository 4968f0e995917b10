"""The content of `grader compare 01`, which requires a correct file."""

import torch

from grader.diagnose.numbers import numbers

STYLES = {
    "log_weights_then_exp": "Choose it if a loss needs the logarithms of the weights anyway, or "
    "to multiply the matrices of all heads and batches at once.",
    "einsum_and_movedim": "Choose it for tensors with many dimensions: the letters name the "
    "dimension that is summed, and softmax is written only for the last dimension.",
}

CALLS = "softmax(dot_product_similarity(q, k)) with 64 queries and 64 keys of dimension 32"


def cost(problem):
    """Return the function whose cost is measured."""
    q, k = numbers(64, 32), numbers(64, 32, start=0.5)
    return lambda: problem.softmax(problem.dot_product_similarity(q, k))


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "The softmax of the scores [4, 5] is [0.2689, 0.7311]. What are the weights if "
            "1000 is added to both scores?",
            lambda: added(problem),
        ),
        (
            "The scores [1, 2, 3] are multiplied by 10. What are their weights then?",
            lambda: ten_times(problem),
        ),
    ]


def added(problem):
    """Return the answer to the first question."""
    weights = shown(problem.softmax(torch.tensor([1004.0, 1005.0], dtype=torch.float64)))
    return (
        f"{weights}, as before. Every power and the sum of the powers have the factor "
        "e¹⁰⁰⁰, so it cancels. For the same reason, the largest score may be subtracted first."
    )


def ten_times(problem):
    """Return the answer to the second question."""
    scores = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    before, after = shown(problem.softmax(scores)), shown(problem.softmax(10 * scores))
    return (
        f"{after} instead of {before}. Only differences of scores count, and they are ten times "
        "as large. One score gets nearly all the weight, and the gradient is nearly 0."
    )


def shown(weights):
    """Return weights as text."""
    return f"[{', '.join(f'{weight:.4f}' for weight in weights.tolist())}]"
