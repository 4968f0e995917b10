"""A correct submission, which is graded after each attack. Full marks."""


def double(x):
    return x + x
