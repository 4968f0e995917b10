"""Asks the system for a terabyte, which it refuses in its own words. Out of memory."""

import mmap


def double(x):
    return mmap.mmap(-1, 1 << 40)
