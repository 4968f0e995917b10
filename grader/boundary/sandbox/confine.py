"""Confines a process for good: what it may read, which system calls it may make, what it may use.

For Linux only. The order of the steps in `confine` matters: each may take away what an earlier one
needed.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from grader.boundary.sandbox import landlock, seccomp, user
from grader.boundary.sandbox.libc import die_with, gain_no_privileges, hide_from_debuggers
from grader.boundary.sandbox.resources import limit_resources


@dataclass(frozen=True)
class Limits:
    """What one worker may use.

    Attributes:
        memory: bytes of address space beyond what the process has already.
        cpu_seconds: seconds of CPU time.
        uid: the user to become, when started as root; None to stay.
        paths: files and folders that stay readable.
    """

    memory: int
    cpu_seconds: int
    uid: int | None
    paths: tuple[str, ...]


def confine(limits: Limits, parent: int) -> None:
    """Confine this process, for the rest of its life, to `limits`.

    Args:
        limits: what stays possible.
        parent: the process that started this one; this one dies with it.

    Raises:
        OSError: a layer can't be put up. The process must then not run student code.
    """
    die_with(parent)
    if limits.uid is not None:
        user.become(limits.uid)
        die_with(parent)  # a change of user clears it
    limit_resources(limits.memory, limits.cpu_seconds, private_uid=limits.uid is not None)
    gain_no_privileges()
    hide_from_debuggers()
    landlock.restrict_files(limits.paths)
    os.environ.clear()
    # Not in os.environ: for libraries that would start threads as soon as they are loaded.
    os.putenv("OMP_NUM_THREADS", "1")
    seccomp.restrict_calls()


def missing() -> str:
    """Return what this machine lacks for the sandbox, in words; empty when it lacks nothing."""
    if not seccomp.usable():
        return f"seccomp can't be used here ({platform.machine()})"
    if landlock.version() == 0:
        return "the kernel doesn't offer Landlock (Linux 5.13 or later, enabled at boot)"
    return ""
