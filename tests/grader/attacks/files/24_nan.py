"""Returns NaN, which no difference is greater than. It is wrong."""


def double(x):
    return x * float("nan")
