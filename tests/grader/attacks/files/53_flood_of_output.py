"""Prints 200 megabytes and returns right answers. It gets full marks; the output is not kept."""

import os
import sys


def double(x):
    for _ in range(200):
        print("x" * 500_000)
        print("\n" * 500_000, file=sys.stderr)
    for number in (1, 2):
        os.write(number, b"x" * 1_000_000)
    return x + x
