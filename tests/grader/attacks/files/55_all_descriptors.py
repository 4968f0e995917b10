"""Opens files up to its limit, and is right. Only its own process is affected."""

KEPT = []


def double(x):
    try:
        while True:
            KEPT.append(open("/dev/null"))  # noqa: SIM115
    except OSError:
        return x + x
