"""Shares out a machine's cores: a job and its workers stay on one, as they take turns."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice


def cores() -> list[int | None]:
    """Return the cores to share out among jobs; None stands for any."""
    if not hasattr(os, "sched_getaffinity"):
        return [None]
    found = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(found)  # not the same for each run that has fewer jobs than cores
    return [*found[first:], *found[:first]]


@contextmanager
def core_of_its_own() -> Iterator[int | None]:
    """Give a core that no other process has from here; None if all are taken, or without Linux.

    It is for processes that don't know each other, as the workers of a cluster or two runs: each
    holds a name that only one process of a machine can have, as long as this context lasts.
    """
    with cores_of_its_own(1) as (core,):
        yield core


@contextmanager
def cores_of_its_own(number: int) -> Iterator[list[int | None]]:
    """Give as many cores as there are jobs, those that no other process has first.

    What is left over shares the cores that this one has; None stands for any, where another run has
    them all, or without Linux.
    """
    if sys.platform != "linux":
        yield [None] * number
        return
    with ExitStack() as stack:
        free = [core for core in cores() if core is not None]
        own = list(islice((core for core in free if _gets(stack, core)), number))
        yield list(islice(cycle(own or [None]), number))


def taken_by_others() -> tuple[int, int]:
    """Return how many cores other runs on this machine have, and of how many there are."""
    found = cores()
    if sys.platform != "linux":
        return 0, len(found)
    with ExitStack() as stack:
        free = sum(core is not None and _gets(stack, core) for core in found)
    return len(found) - free, len(found)


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
