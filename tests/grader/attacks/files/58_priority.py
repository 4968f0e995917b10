"""Requests a higher priority and other processors. The sandbox forbids it."""

import os


def double(x):
    for action in (
        lambda: os.nice(-5),
        lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
        lambda: os.sched_setaffinity(0, {0}),
        lambda: os.sched_setaffinity(os.getppid(), {0}),
        lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    ):
        try:
            action()
        except OSError as error:
            refusal = error
        else:
            return x + x
    raise refusal
