"""Takes too much memory at import. The result is "out of memory"."""

KEPT = bytearray(10**12)


def double(x):
    return x + x
