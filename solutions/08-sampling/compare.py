"""The content of `grader compare 08`, which requires a correct file."""

import torch

from grader.diagnose.numbers import numbers

STYLES = {
    "exponential_race": "Choose it on a GPU: one division and one argmax sample a token for each "
    "row, and the GPU does not wait for the CPU.",
    "inverse_cdf": "Choose it to repeat a sample elsewhere: one number between 0 and 1 per "
    "row determines the sample and can be saved.",
}

CALLS = "sample(logits, 0.8, top_k=50, top_p=0.9) with 8 rows of 1,000 tokens"


def cost(problem):
    """Return the function whose cost is measured."""
    logits = numbers(8, 1000, size=4.0)
    return lambda: problem.sample(logits, 0.8, 50, 0.9)


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "The logits are [2, 1, 0, -1]. How many tokens does top-p with p = 0.9 keep at the "
            "temperatures 0.5, 1 and 2?",
            lambda: by_temperature(problem),
        ),
        (
            "The temperature is 2, for the same logits. Does it matter whether the temperature or "
            "the filter is applied first, for top-k with k = 2 and for top-p with p = 0.9?",
            lambda: order(problem),
        ),
    ]


LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0]], dtype=torch.float64)


def kept(logits):
    """Return the number of tokens that a filter kept."""
    return int(logits.isfinite().sum())


def by_temperature(problem):
    """Return the answer to the first question."""
    heated = (problem.apply_temperature(LOGITS.clone(), t) for t in (0.5, 1.0, 2.0))
    counts = ", ".join(str(kept(problem.keep_top_p(logits, 0.9))) for logits in heated)
    return (
        f"{counts}. A higher temperature makes the probabilities more equal, so more tokens are "
        "needed to reach 0.9. Top-k would keep the same number each time."
    )


def order(problem):
    """Return the answer to the second question."""

    def both(keep, amount):
        after = keep(problem.apply_temperature(LOGITS.clone(), 2.0), amount)
        before = problem.apply_temperature(keep(LOGITS.clone(), amount), 2.0)
        return f"{kept(after)} tokens with the temperature first, {kept(before)} with it last"

    return (
        f"Top-k keeps {both(problem.keep_top_k, 2)}: it depends only on the order of the logits, "
        f"which no temperature changes. Top-p keeps {both(problem.keep_top_p, 0.9)}: it depends "
        "on the probabilities."
    )
