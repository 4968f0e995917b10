"""Judge results of dot_product_variance for many seeds, in the hidden tests of problem 03."""

import itertools
import math
import statistics

import torch

from grader.run.compare import check_number, require


def mean_of_two_scaled_pairs(mean, call):
    """Require that the mean of the variances of two scaled dot products is about 0.5."""
    meaning = "about 0.5, half of 1, as n_pairs is only 2"
    check_number(mean, 0.29, 0.74, call, meaning, "It returned {} on average over 300 seeds")


def share_of_small_scaled_ones(share, call):
    """Require that about a quarter of the variances of two scaled dot products are below 0.05."""
    meaning = "below 0.05 for about 0.25 of them, as n_pairs is only 2"
    returned = "It returned less than 0.05 for {} of all seeds"
    check_number(share, 0.125, 0.38, call, meaning, returned)


def mean_of_products(mean, call):
    """Require that the mean of the variances of 50 products of two normal numbers is about 0.98."""
    returned = "It returned {} on average over 160 seeds"
    check_number(mean, 0.8, 1.16, call, "about 0.98", returned)


def spread_of_products(spread, call):
    """Require that the variances in `mean_of_products` have a standard deviation of about 0.39.

    The fourth moment is 9 for products of normal numbers, and 3.24 for products of uniform numbers.
    """
    returned = "Over 160 seeds its results have a standard deviation of {}"
    check_number(spread, 0.26, 0.8, call, "about 0.39, as for normal numbers", returned)


def mean_of_many_pairs(mean, call, times):
    """Require that the mean of the variances of n_pairs scaled dot products is about 1."""
    returned = f"It returned {{}} on average over {times} seeds"
    check_number(mean, 0.75, 1.25, call, "about 1", returned)


def of_these_pairs(values, call, n_pairs, seeds):
    """Require that each value is the variance of exactly n_pairs dot products.

    `values` contains one value for each of the seeds.

    The correct variances depend on the order in which the random numbers are drawn. If the
    student's code uses none of the usual orders, all values are accepted.
    """
    ways = zip(*(usual_variances(16, n_pairs, seed) for seed in seeds), strict=True)
    for variances in ways:
        ratios = [value / variance for value, variance in zip(values, variances, strict=True)]
        usual = statistics.median(ratios)
        # Four ratios are never equal by chance. If they are equal, the student's code draws in this
        # order.
        if sum(math.isclose(ratio, usual, rel_tol=1e-4) for ratio in ratios) < 4:
            continue
        meaning = f"the sum of squared deviations from the mean, divided by n_pairs = {n_pairs}"
        require(
            all(math.isclose(ratio, 1, rel_tol=3e-4) for ratio in ratios),
            f"{call}\nWith several seeds, the result is {usual:.5g} times {meaning}.",
        )


def usual_variances(d_k, n_pairs, seed):
    """Yield the variance of n_pairs dot products for each usual order of drawing the numbers."""
    for dtype in (torch.float32, torch.float64):
        generator = torch.Generator().manual_seed(seed)
        numbers = torch.randn(2 * n_pairs * d_k, generator=generator, dtype=dtype).double()
        # Queries and keys may be drawn one after the other, pair by pair, or entry by entry.
        for order in itertools.permutations([2, n_pairs, d_k]):
            indices = [order.index(n) for n in (2, n_pairs, d_k)]
            queries, keys = numbers.view(order).permute(indices)
            yield (queries * keys).sum(-1).var(correction=0).item()
