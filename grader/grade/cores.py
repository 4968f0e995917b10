"""Shares out a machine's cores: a job and its workers stay on one, as they take turns.

Processes that don't know each other, as two runs or the workers of a cluster, each hold a name for
a core that only one process of a machine can have.
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
    """Give as many cores as there are jobs, those that no other process has first.

    More jobs than free cores share these. None means any core: other runs have all cores, or the
    system is not Linux.
    """
    if sys.platform != "linux":
        yield [None] * number
        return
    with ExitStack() as stack:
        own = list(islice((core for core in _cores() if _gets(stack, core)), number))
        yield list(islice(cycle(own or [None]), number))


def taken_by_others() -> tuple[int, int]:
    """Return how many cores other runs on this machine have, and of how many there are."""
    if sys.platform != "linux":
        return 0, 0
    found = _cores()
    with ExitStack() as stack:
        free = sum(_gets(stack, core) for core in found)
    return len(found) - free, len(found)


def _cores() -> list[int]:
    found = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(found)  # not the same for each run that has fewer jobs than cores
    return [*found[first:], *found[:first]]


def _gets(stack: ExitStack, core: int) -> bool:
    """Take the core's name for a socket, until the stack is left; return whether it was free."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0course's grader, core {core}")
    except OSError:
        claim.close()
        return False
    stack.enter_context(claim)
    return True
