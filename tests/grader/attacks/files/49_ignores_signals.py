"""Ignores all signals and catches everything. The result is a timeout."""

import contextlib
import signal
import time


def double(x):
    for number in range(1, 65):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        signal.setitimer(signal.ITIMER_REAL, 0)
    while True:
        try:
            while True:
                time.sleep(0)
        except BaseException:
            continue
