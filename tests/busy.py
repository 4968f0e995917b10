"""Keep a processor busy, as on an overloaded machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# An endless loop that keeps a core busy. It ends when its parent process has ended.
_BUSY = """
import os
parent = os.getppid()
print(flush=True)
while os.getppid() == parent: pass
"""


@contextmanager
def busy_core(programs: int) -> Iterator[int]:
    """Yield the number of a core that `programs` processes keep busy."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("programs can't be kept on one core here")
    core = max(os.sched_getaffinity(0))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(programs):
            # The kernel may divide the time among sessions, so each program has its own session.
            command = [sys.executable, "-Sc", _BUSY]
            one = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
            started.append(one)
            assert one.stdout is not None
            one.stdout.readline()
            os.sched_setaffinity(one.pid, {core})
        yield core
    finally:
        for one in started:
            one.kill()
            one.wait()
            assert one.stdout is not None
            one.stdout.close()
