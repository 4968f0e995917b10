"""Opens files until it may not open more, and is right. Only itself is in need."""

KEPT = []


def double(x):
    try:
        while True:
            KEPT.append(open("/dev/null"))  # noqa: SIM115
    except OSError:
        return x + x
