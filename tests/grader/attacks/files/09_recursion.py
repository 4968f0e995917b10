"""Calls itself for ever. An error."""


def double(x):
    return double(x)
