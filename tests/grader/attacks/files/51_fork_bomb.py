"""Starts processes that start processes. It can't start one."""

import os


def double(x):
    for _ in range(3):
        os.fork()
    return x + x
