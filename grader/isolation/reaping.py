"""Ends processes that this one forked, and says how they ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time


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
