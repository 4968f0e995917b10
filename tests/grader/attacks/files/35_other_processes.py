"""Searches for other processes in /proc. It sees none."""

import os


def double(x):
    if any(name.isdigit() for name in os.listdir("/proc")):
        return x + x
    raise LookupError("nobody")
