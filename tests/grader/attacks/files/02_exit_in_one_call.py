"""Ends the process in one call. That test fails; the other tests run in a new process."""

import os


def double(x):
    if x.numel() == 1:
        os._exit(0)
    return x + x
