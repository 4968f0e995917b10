"""Looks for other processes. It sees none."""

import os


def double(x):
    if any(name.isdigit() for name in os.listdir("/proc")):
        return x + x
    raise LookupError("nobody")
