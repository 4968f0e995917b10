"""The content of `grader compare 03`, which requires a correct file."""

import math

import torch

from grader.diagnose.numbers import numbers
from shared.worked_example import K, Q, V

STYLES = {
    "scaled_queries": "Choose it if there are many keys: it scales the n × d_k entries of the "
    "queries instead of the n × m scores, with the same result.",
    "loop_over_queries": "Choose it to explain or to debug: it processes one query at a time, "
    "never stores the matrix of all scores, and can print each step.",
}

CALLS = "scaled_dot_product_attention(q, k, v) with 32 queries, 128 keys and d_k = d_v = 16"


def cost(problem):
    """Return the function whose cost is measured."""
    q, k, v = numbers(32, 16), numbers(128, 16, start=0.5), numbers(128, 16, start=0.9)
    return lambda: problem.scaled_dot_product_attention(q, k, v)


def questions(problem):
    """Return (question, function that returns the answer) pairs."""
    return [
        (
            "In the worked example, row 1 of the weights is [0.131, 0.160, 0.556, 0.152]. What "
            "is this row if the scores are not divided by √8?",
            lambda: unscaled(problem),
        ),
        (
            "Key 2 and its value are appended a second time, as a fifth key. In row 1, key 2 had "
            "the weight 0.556. Which weights do the two equal keys have now?",
            lambda: doubled(problem),
        ),
    ]


def weights(problem, q, k):
    """Return the weights of attention, which are the output if the values are unit vectors."""
    unit_vectors = torch.eye(len(k), dtype=torch.float64)
    return problem.scaled_dot_product_attention(q.double(), k.double(), unit_vectors)


def unscaled(problem):
    """Return the answer to the first question."""
    row = weights(problem, Q * math.sqrt(Q.shape[-1]), K)[1]
    return (
        f"{shown(row)}. The differences of the scores are √8 = 2.83 times as large, and key 2 gets "
        "nearly all the weight. With d_k = 512, the factor would be 22.6."
    )


def doubled(problem):
    """Return the answer to the second question."""
    row = weights(problem, Q, torch.cat([K, K[2:3]]))[1]
    values = torch.cat([V, V[2:3]]).double()
    output = problem.scaled_dot_product_attention(
        Q.double(), torch.cat([K, K[2:3]]).double(), values
    )
    return (
        f"The whole row is {shown(row)}. The two keys have the same weight, together more than "
        f"0.556, because the sum in softmax has one more power. So value 2 counts twice, and row 1 "
        f"of the output begins with {output[1, 0]:.3f} instead of -0.777."
    )


def shown(row):
    """Return a row of numbers as text."""
    return f"[{', '.join(f'{number:.3f}' for number in row.tolist())}]"
