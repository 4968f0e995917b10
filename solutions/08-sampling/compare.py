"""The content of `grader compare 08`, which a correct file unlocks."""

import torch

from grader.diagnose.numbers import numbers

STYLES = {
    "exponential_race": "Choose it on a GPU: one division and one argmax draw for all rows, and "
    "nothing waits for the CPU.",
    "inverse_cdf": "Choose it where a draw is to be repeated elsewhere: one number between 0 and 1 "
    "per row decides, and it can be written down.",
}

CALLS = "sample(logits, 0.8, top_k=50, top_p=0.9) with 8 rows of 1,000 tokens"


def cost(problem):
    """Return the calls to measure."""
    logits = numbers(8, 1000, size=4.0)
    return lambda: problem.sample(logits, 0.8, 50, 0.9)


def questions(problem):
    """Return the questions, each with the function that computes its answer."""
    return [
        (
            "The logits are [2, 1, 0, -1]. How many tokens does top-p with p = 0.9 keep at the "
            "temperatures 0.5, 1 and 2?",
            lambda: by_temperature(problem),
        ),
        (
            "Does it matter for the same logits, at temperature 2, whether the temperature or the "
            "filter comes first? For top-k with k = 2? For top-p with p = 0.9?",
            lambda: order(problem),
        ),
    ]


LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0]], dtype=torch.float64)


def kept(logits):
    """How many tokens are left."""
    return int(logits.isfinite().sum())


def by_temperature(problem):
    """Answer the first question."""
    heated = (problem.apply_temperature(LOGITS.clone(), t) for t in (0.5, 1.0, 2.0))
    counts = ", ".join(str(kept(problem.keep_top_p(logits, 0.9))) for logits in heated)
    return (
        f"{counts}. The hotter, the closer the probabilities, and the more tokens it takes to "
        "reach 0.9. Top-k would keep the same number each time."
    )


def order(problem):
    """Answer the second question."""

    def both(keep, amount):
        after = keep(problem.apply_temperature(LOGITS.clone(), 2.0), amount)
        before = problem.apply_temperature(keep(LOGITS.clone(), amount), 2.0)
        return f"{kept(after)} tokens with the temperature first, {kept(before)} with it last"

    return (
        f"Top-k keeps {both(problem.keep_top_k, 2)}: it looks at the order only, which no "
        f"temperature changes. Top-p keeps {both(problem.keep_top_p, 0.9)}: it looks at the "
        "probabilities."
    )
