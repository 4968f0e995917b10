"""Tries to start processes that start processes. The first one can't start."""

import os


def double(x):
    for _ in range(3):
        os.fork()
    return x + x
