"""Returns infinity, whose difference from anything is no number. It is wrong."""


def double(x):
    return x * float("inf")
