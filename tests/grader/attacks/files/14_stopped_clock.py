"""Stops Python's clock and runs too long. The grader measures time in another process."""

import time

sleep = time.sleep
time.time = time.monotonic = time.perf_counter = lambda: 0.0


def double(x):
    sleep(1000)
    return x + x
