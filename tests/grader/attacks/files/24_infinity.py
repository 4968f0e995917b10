"""Returns infinity; its difference from any number is not a number. It is wrong."""


def double(x):
    return x * float("inf")
