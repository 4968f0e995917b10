"""Limits memory, CPU time and files of this process (rlimits)."""

from __future__ import annotations

import resource


def limit_resources(memory: int, cpu_seconds: int, *, private_uid: bool) -> None:
    """Limit memory, CPU time and files.

    Args:
        memory: bytes of address space beyond what the process has now. Never an absolute number:
            torch alone maps more than half a gigabyte.
        cpu_seconds: after these the process gets SIGXCPU, a second later SIGKILL.
        private_uid: whether the user is this process's alone, so that its threads can be counted.
    """
    limits = {
        resource.RLIMIT_AS: (address_space() + memory,) * 2,
        resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
        resource.RLIMIT_NOFILE: (64, 64),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_MEMLOCK: (0, 0),
        resource.RLIMIT_MSGQUEUE: (0, 0),
    }
    if private_uid:
        limits[resource.RLIMIT_NPROC] = (64, 64)
    for number, limit in limits.items():
        resource.setrlimit(number, limit)


def address_space() -> int:
    """Return how many bytes of address space this process has."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
