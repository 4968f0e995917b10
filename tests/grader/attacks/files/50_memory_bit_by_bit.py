"""Takes 600 megabytes in small pieces, which is above its limit. The result is "out of memory"."""


def double(x):
    kept = [bytearray(20_000_000) for _ in range(30)]
    return x + x if kept else None
