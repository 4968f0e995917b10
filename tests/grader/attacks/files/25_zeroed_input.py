"""Zeroes the test's input, so that zeros become right. The test compares the input with a copy and
reports the change.
"""


def double(x):
    x.zero_()
    return x
