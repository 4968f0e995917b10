"""Puts another file in the place of its channel. Only its own process suffers."""

import os


def double(x):
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 3)
    return x
