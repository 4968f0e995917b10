"""Takes 600 megabytes in small pieces, above its limit. Out of memory."""


def double(x):
    kept = [bytearray(20_000_000) for _ in range(30)]
    return x + x if kept else None
