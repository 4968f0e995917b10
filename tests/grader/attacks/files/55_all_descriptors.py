"""Opens as many files as it can, and returns right answers. Only its own process is affected."""

KEPT = []


def double(x):
    try:
        while True:
            KEPT.append(open("/dev/null"))  # noqa: SIM115
    except OSError:
        return x + x
