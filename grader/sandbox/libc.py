"""Asks the kernel, by way of the C library, for what Python has no function for."""

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
        OSError: the kernel refuses.
    """
    result = ask(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"system call {number}: {os.strerror(code)}")
    return result


def ask(number: int, *arguments: object) -> int:
    """Make a system call and return its result, negative if the kernel refuses."""
    return int(_libc.syscall(number, *arguments))


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, by whatever means.

    Args:
        parent: the process that started this one, should it have ended already.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def hide_from_debuggers() -> None:
    """Keep this process's memory and /proc entries from other processes of the same user."""
    _prctl(_PR_SET_DUMPABLE, 0)


def gain_no_privileges() -> None:
    """Never get more rights by running a program; the kernel wants that before it filters calls."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Give up all that a program could get beyond its user's rights."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break


def keep_access_times() -> bool:
    """Let this process, and those it forks, see all mounts as ones that note no reading.

    Most file systems note when a file was last read, if they did not on the same day. A worker may
    read Python's own files and ask when they were read: a bit of each, for the next worker, in the
    next run.

    No other processes see them so. It takes the rights of root, and a system that lets root use
    them; where that isn't so, nothing changes.

    Returns:
        Whether it is so now.
    """
    attributes = struct.pack("=QQQQ", _NOATIME, _ALL_ATIME, 0, 0)
    arguments = attributes, ctypes.c_size_t(len(attributes))
    everywhere = ctypes.c_int(_HERE), b"/", ctypes.c_uint(_RECURSIVE)
    has_mounts_of_its_own = _libc.unshare(_CLONE_NEWNS) == 0
    return has_mounts_of_its_own and ask(_MOUNT_SETATTR, *everywhere, *arguments) == 0


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")
