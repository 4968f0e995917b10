"""Begins and ends a forked process: which files it has open, and how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time


def keep_only(descriptor: int, *, silent: bool = True) -> int:
    """Close all files of this process but one, which becomes number 3; give that number.

    Args:
        descriptor: the one.
        silent: whether 0, 1 and 2 lead to nothing then; else 2 stays, where errors are told.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2) if silent else (0, 1):
        os.dup2(null, number)
    if descriptor != 3:
        os.dup2(descriptor, 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    return 3


def end(process: int, grace: float) -> tuple[int, bool, float]:
    """End a process.

    Args:
        process: a child of this one, which was not waited for.
        grace: seconds that it has to end by itself.

    Returns:
        Its exit code, -N after signal N; whether it had to be killed; its seconds of CPU time.
    """
    ended = ended_by_itself(process)
    deadline = time.monotonic() + grace
    while ended is None and time.monotonic() < deadline:
        time.sleep(0.001)
        ended = ended_by_itself(process)
    if ended is not None:
        return ended[0], False, ended[1]
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    code, seconds = _waited_for(process, 0) or (0, 0.0)
    return code, True, seconds


def ended_by_itself(process: int) -> tuple[int, float] | None:
    """Return a process's exit code and seconds of CPU time; None if it is still alive."""
    return _waited_for(process, os.WNOHANG)


def _waited_for(process: int, options: int) -> tuple[int, float] | None:
    found, status, usage = os.wait4(process, options)
    if not found:
        return None
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
