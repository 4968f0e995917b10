"""A correct submission, which is graded after each attack and gets full marks."""


def double(x):
    return x + x
