"""Asks for a terabyte at once. Out of memory."""


def double(x):
    return bytearray(10**12)
