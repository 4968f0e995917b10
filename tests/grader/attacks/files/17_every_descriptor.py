"""Writes a forged result into every open file descriptor. Only its own connection is open, so the
result is bad output.
"""

import os

FORGED = b'{"status": "passed"}\n'


def double(x):
    for number in range(3, 64):
        try:
            os.write(number, FORGED)
        except OSError:
            continue
    return x
