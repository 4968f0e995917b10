"""Assign a machine's cores to jobs. A job and its workers share one core, as they never run
together.

A process reserves a core by binding a socket to a name, which only one process of the machine can
do. So separate runs, and the workers of a cluster, use different cores.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice


@contextmanager
def cores_of_its_own(number: int) -> Iterator[list[int | None]]:
    """Yield a list with a reserved core for each job. If there are more jobs than free cores, some
    jobs share a core.

    The cores are None if other runs have reserved all of them, or if the system is not Linux. Then
    each job may run on any core.
    """
    if sys.platform != "linux":
        yield [None] * number
        return
    with ExitStack() as stack:
        free = list(islice((core for core in _cores() if _gets(stack, core)), number))
        yield list(islice(cycle(free or [None]), number))


def taken_by_others() -> tuple[int, int]:
    """Return the number of cores that other runs have reserved, and the number of all cores."""
    if sys.platform != "linux":
        return 0, 0
    cores = _cores()
    with ExitStack() as stack:
        free = sum(_gets(stack, core) for core in cores)
    return len(cores) - free, len(cores)


def _cores() -> list[int]:
    cores = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(cores)  # so that runs with few jobs begin with different cores
    return [*cores[first:], *cores[:first]]


def _gets(stack: ExitStack, core: int) -> bool:
    """Reserve a core until the stack is closed; return whether it was free."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0course's grader, core {core}")
    except OSError:
        claim.close()
        return False
    stack.enter_context(claim)
    return True
