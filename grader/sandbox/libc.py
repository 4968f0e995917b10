"""Make Linux system calls for which Python has no function, through the C library."""

from __future__ import annotations

import ctypes
import os
import signal
import struct

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNS = 0x20000
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000
_NOATIME, _ALL_ATIME = 0x10, 0x70

_libc = ctypes.CDLL(None, use_errno=True)


def system_call(number: int, *arguments: object) -> int:
    """Make a system call and return its result.

    Raises:
        OSError: the kernel refuses the call.
    """
    result = try_system_call(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"system call {number}: {os.strerror(code)}")
    return result


def try_system_call(number: int, *arguments: object) -> int:
    """Make a system call and return its result. It is negative if the kernel refuses the call."""
    return int(_libc.syscall(number, *arguments))


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends in any way.

    Args:
        parent: the process that started this process. If the parent has already ended, this
            process exits at once.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def hide_from_debuggers() -> None:
    """Hide this process's memory and /proc entries from other processes of the same user."""
    _prctl(_PR_SET_DUMPABLE, 0)


def gain_no_privileges() -> None:
    """Prevent this process from gaining privileges.

    The kernel requires this before it accepts a seccomp filter.
    """
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Drop all capabilities (rights of root) that this process could otherwise get later."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break


def keep_access_times() -> bool:
    """Remount all file systems for this process and its forks, without recording access times.

    About once a day, most file systems record when a file was last read. So by reading or not
    reading one of Python's files, a worker could pass one bit to a worker of a later run.

    The mounts of other processes don't change. If this process is not root, or if the system
    restricts root, nothing changes.

    Returns:
        Whether the mounts were changed.
    """
    attributes = struct.pack("=QQQQ", _NOATIME, _ALL_ATIME, 0, 0)
    arguments = attributes, ctypes.c_size_t(len(attributes))
    everywhere = ctypes.c_int(_HERE), b"/", ctypes.c_uint(_RECURSIVE)
    has_mounts_of_its_own = _libc.unshare(_CLONE_NEWNS) == 0
    return has_mounts_of_its_own and try_system_call(_MOUNT_SETATTR, *everywhere, *arguments) == 0


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")
