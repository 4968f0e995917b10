"""The content of `grader compare 03`, which a correct file unlocks."""

import math

import torch

from grader.diagnose.numbers import numbers
from shared.worked_example import K, Q, V

STYLES = {
    "scaled_queries": "Choose it where keys are many: the n × d_k queries are scaled instead of "
    "the n × m scores, with the same result.",
    "loop_over_queries": "Choose it to explain or to debug: one query at a time, the table of all "
    "scores is never there, and each step can be printed.",
}

CALLS = "scaled_dot_product_attention(q, k, v) with 32 queries, 128 keys and d_k = d_v = 16"


def cost(problem):
    """Return the calls to measure."""
    q, k, v = numbers(32, 16), numbers(128, 16, start=0.5), numbers(128, 16, start=0.9)
    return lambda: problem.scaled_dot_product_attention(q, k, v)


def questions(problem):
    """Return the questions, each with the function that computes its answer."""
    return [
        (
            "In the worked example, row 1 of the weights is [0.131, 0.160, 0.556, 0.152]. What "
            "does it become when the scores are no longer divided by √8?",
            lambda: unscaled(problem),
        ),
        (
            "Key 2 and its value are appended a second time, as a fifth key. Row 1 gave key 2 the "
            "weight 0.556. Which weights do the two get now?",
            lambda: doubled(problem),
        ),
    ]


def weights(problem, q, k):
    """The weights that attention gives: with one value per key, each a unit vector, its output."""
    unit_vectors = torch.eye(len(k), dtype=torch.float64)
    return problem.scaled_dot_product_attention(q.double(), k.double(), unit_vectors)


def unscaled(problem):
    """Answer the first question."""
    row = weights(problem, Q * math.sqrt(Q.shape[-1]), K)[1]
    return (
        f"{shown(row)}. The scores lie √8 = 2.83 times as far apart, and key 2 takes nearly all. "
        "With d_k = 512 the factor would be 22.6."
    )


def doubled(problem):
    """Answer the second question."""
    row = weights(problem, Q, torch.cat([K, K[2:3]]))[1]
    again = torch.cat([V, V[2:3]]).double()
    output = problem.scaled_dot_product_attention(
        Q.double(), torch.cat([K, K[2:3]]).double(), again
    )
    return (
        f"The whole row is {shown(row)}: the two get the same, and together more than before, as "
        f"softmax has one more power in its sum. So value 2 counts twice, and row 1 of the output "
        f"begins with {output[1, 0]:.3f} instead of -0.777. Copies are not free."
    )


def shown(row):
    """A row of numbers as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row.tolist())}]"
