"""Assign a machine's cores to jobs.

A job and its workers share one core, because they never run at the same time.

A process reserves a core by binding a socket to a name that contains the core's number. On one
machine, only one process can bind this name. Therefore separate runs, and the workers of a cluster,
use different cores.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice


@contextmanager
def reserved_cores(jobs: int) -> Iterator[list[int | None]]:
    """Yield a list with a reserved core for each job.

    If there are more jobs than free cores, some jobs share a core. If other runs have reserved all
    cores, or if the system is not Linux, the list contains None for each job. Then the jobs can run
    on any core.
    """
    if sys.platform != "linux":
        yield [None] * jobs
        return
    with ExitStack() as stack:
        free = list(islice((core for core in _cores() if _reserve(stack, core)), jobs))
        yield list(islice(cycle(free or [None]), jobs))


def taken_by_others() -> tuple[int, int]:
    """Return the number of cores that other runs have reserved, and the total number of cores."""
    if sys.platform != "linux":
        return 0, 0
    cores = _cores()
    with ExitStack() as stack:
        free = sum(_reserve(stack, core) for core in cores)
    return len(cores) - free, len(cores)


def _cores() -> list[int]:
    cores = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(cores)  # so that two runs with few jobs use different cores
    return [*cores[first:], *cores[:first]]


def _reserve(stack: ExitStack, core: int) -> bool:
    """Reserve a core until `stack` is closed. Return False if the core was already reserved."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0course's grader, core {core}")
    except OSError:
        claim.close()
        return False
    stack.enter_context(claim)
    return True
