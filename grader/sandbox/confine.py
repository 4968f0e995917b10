"""Confine a process permanently: limit its files, system calls and resources. Linux only.

The order of the steps in `confine` matters, because a step may need a right that a later step
removes.
"""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterable

from grader.sandbox import landlock, seccomp
from grader.sandbox.libc import (
    die_with,
    drop_capabilities,
    gain_no_privileges,
    hide_from_debuggers,
)


def confine(
    memory: int, cpu_seconds: int, uid: int | None, paths: Iterable[str], parent: int
) -> None:
    """Confine this process permanently.

    Args:
        memory: the allowed bytes of address space in addition to the current size.
        cpu_seconds: the limit of CPU time in seconds.
        uid: the id of the user that this process becomes, which requires root; None to keep the
            current user.
        paths: files and folders that stay readable.
        parent: the process that started this process. If it ends, this process is killed.

    Raises:
        OSError: a step failed, so the process must not run student code.
    """
    die_with(parent)
    if uid is not None:
        become(uid)
        die_with(parent)  # the kernel clears this setting when the user changes
    limit_resources(memory, cpu_seconds, private_uid=uid is not None)
    gain_no_privileges()
    hide_from_debuggers()
    landlock.restrict_files(paths)
    os.environ.clear()
    # Without this variable, some libraries start threads when they are loaded. `putenv` sets it
    # without adding it to os.environ.
    os.putenv("OMP_NUM_THREADS", "1")
    seccomp.restrict_calls()


def missing() -> str:
    """Return the reason why this machine can't run the sandbox, or an empty string."""
    if not seccomp.usable():
        return f"seccomp can't be used here ({platform.machine()})"
    if landlock.version() == 0:
        return "the kernel has no Landlock, which requires Linux 5.13 and must be enabled at boot"
    return ""


def limit_resources(memory: int, cpu_seconds: int, *, private_uid: bool) -> None:
    """Limit memory, CPU time and files.

    Args:
        memory: the allowed bytes of address space in addition to the current size. torch alone
            maps more than half a gigabyte.
        cpu_seconds: the seconds of CPU time after which the process gets SIGXCPU. One second later,
            it gets SIGKILL.
        private_uid: whether no other process has the user id of this process. Then the user's
            number of threads is limited, too.

    Raises:
        OSError: an inherited limit of this process is lower.
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
    try:
        for number, limit in limits.items():
            resource.setrlimit(number, limit)
    except ValueError:
        raise OSError("a limit of this shell is too low (`ulimit -Ha` lists the limits)") from None


def address_space() -> int:
    """Return the size of this process's address space in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


_FIRST_UID, _UIDS = 60500, 4000


def pick_uid(process: int) -> int:
    """Return the user id for a worker, computed from its process id. No real user has this id."""
    return _FIRST_UID + process % _UIDS


def become(uid: int) -> None:
    """Become an unprivileged user permanently."""
    drop_capabilities()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def may_become(uid: int, paths: Iterable[str]) -> bool:
    """Return whether this process can become `uid` and still read `paths`.

    It can't, for example, if the Python interpreter is in the private home directory of root.
    """
    if os.geteuid() != 0:
        return False
    try:
        os.setgroups([])
        os.setegid(uid)
        os.seteuid(uid)
        return all(os.access(p, os.R_OK, effective_ids=True) for p in paths)
    except OSError:
        return False
    finally:
        os.seteuid(0)
        os.setegid(0)
