"""Compute scaled attention, and judge variances of dot products, for problem 03."""

import math

import torch

from grader.run.compare import check, check_number, require
from shared.oracles import attention

WEIGHTS, OUTPUT = attention.WEIGHTS, attention.OUTPUT

of_module = attention.self_attention_by_hand
slopes_of_module = attention.self_attention_slopes


def output(q, k, v):
    """Return the expected result of scaled_dot_product_attention, in the dtype of v."""
    batches = [t.double().reshape(-1, *t.shape[-2:]).tolist() for t in (q, k, v)]
    outputs = [attention.attention_by_hand(*matrices) for matrices in zip(*batches, strict=True)]
    outputs = torch.tensor(outputs, dtype=torch.float64)
    return outputs.reshape(*q.shape[:-1], v.shape[-1]).to(v.dtype)


def slopes(inputs, upstream):
    """Return the gradients with respect to q, k and v by central differences."""
    return attention.slopes_by_hand(lambda at: output(**at), inputs, upstream)


def does_not_vanish(slope, call, k):
    """Require the correct gradient with respect to q, where the scaled scores are 1.5 and -1.5.

    `slope` is the gradient, and `k` contains the two keys.
    """
    largest = slope.abs().max().item()
    require(
        largest > 1e-8,
        f"{call}\nThe largest entry of the gradient with respect to q is {largest:.1g}, so almost "
        "nothing is learned: the weights are too near 0 and 1. If they were divided by √d_k, the "
        "scores would be ± 1.5.",
    )
    weight = 1 / (1 + math.exp(-3))
    expected = weight * (1 - weight) * (k[:1] - k[1:]) / math.sqrt(k.shape[-1])
    check(slope, expected, f"the gradient of {call} with respect to q", atol=1e-6)


# dot_product_variance


def is_variance(value, call, d_k, n_pairs, scaled):
    """Require a value within 6.5 standard errors of the true variance of dot products."""
    expected = 1 if scaled else d_k
    chance = 6.5 * math.sqrt((2 + 6 / d_k) / n_pairs)
    low, high = expected * (1 - chance), expected * (1 + chance)
    check_number(value, low, high, call, f"about {expected}: from {low:.2f} to {high:.2f}")


def same_again(values, call, what):
    """Require that two values are equal. `what` describes the seed for both, in the message."""
    first, again = values
    same = math.isclose(first, again, rel_tol=1e-6)
    require(same, f"{call}\n{what} gave {first:.6g}, then {again:.6g}.")


def scaled_exactly(values, call, d_k):
    """Require that, for the same seed, the unscaled variance is d_k times the scaled variance.

    `values` contains an unscaled variance, a scaled one, and the unscaled one again.
    """
    for value in values:
        check_number(value, 1e-9, math.inf, call, "a variance, so above 0")
    unscaled, scaled, again = values
    message = f"With one seed it returned {unscaled:.6g} unscaled, and then {again:.6g}."
    require(math.isclose(unscaled, again, rel_tol=1e-6), f"{call}\n{message}")
    # One in a thousand float32 numbers near 1000 happens to have only four decimals.
    rounded = all(value == round(value, 4) for value in (unscaled, scaled))
    require(not rounded, f"{call}\nThe unscaled variance is {unscaled}; it should not be rounded.")
    message = (
        f"The variance is {unscaled:.6g} unscaled and {scaled:.6g} scaled, a ratio of "
        f"{unscaled / scaled:.6g}. It should be {d_k}, as each dot product is divided by √{d_k}."
    )
    require(math.isclose(unscaled / scaled, d_k, rel_tol=1e-4), f"{call}\n{message}")


# On average, the population variance of two numbers is half of the true variance. It is near 0
# about one time in four, and far less often for three or more numbers.


def mean_of_two_pairs(mean, call):
    """Require that the mean of the variances of two dot products with d_k = 16 is about 8."""
    meaning = "about 8, which is half of d_k, because n_pairs is only 2"
    check_number(mean, 5.2, 11.36, call, meaning, "It returned {} on average over 400 seeds")


def share_of_small_ones(share, call):
    """Require that about a quarter of the variances of two dot products are below 0.8."""
    meaning = "below 0.8 for about 0.25 of them, as n_pairs is only 2"
    check_number(share, 0.136, 0.37, call, meaning, "It returned less than 0.8 for {} of all seeds")
