"""Looks at other processes. It sees none."""

import os


def double(x):
    seen = [name for name in os.listdir("/proc") if name.isdigit()]
    with open(f"/proc/{seen[0]}/cmdline", "rb") as file:
        raise LookupError(str(file.read()))
