"""What hidden tests of problem 03 require of many values of dot_product_variance."""

from grader.run.compare import check_number


def mean_of_two_scaled_pairs(mean, call):
    """So large are variances of two scaled dot products on average."""
    meaning = "about 0.5 on average over 300 seeds, half of 1, as n_pairs is only 2"
    check_number(mean, 0.29, 0.74, call, meaning)


def share_of_small_scaled_ones(share, call):
    """So many of them are small."""
    meaning = "below 0.05 for about a quarter of the seeds, as n_pairs is only 2"
    check_number(share, 0.125, 0.38, call, meaning)


def mean_of_products(mean, call):
    """So large are variances of 50 products of two normal numbers on average."""
    check_number(mean, 0.8, 1.16, call, "about 0.98 on average over 160 seeds")


def spread_of_products(spread, call):
    """So much they differ: products of normal numbers have a fourth moment of 9.

    Those of uniform numbers have one of 3.24.
    """
    meaning = "scattered by about 0.39 from seed to seed, as normal numbers are"
    check_number(spread, 0.26, 0.8, call, meaning)


def mean_of_many_pairs(mean, call, times):
    """So large are variances of many scaled dot products on average."""
    check_number(mean, 0.75, 1.25, call, f"about 1 on average over {times} seeds")
