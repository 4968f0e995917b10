"""Takes too much memory at import. Out of memory."""

KEPT = bytearray(10**12)


def double(x):
    return x + x
