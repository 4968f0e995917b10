"""Wait for conditions, and read data about Linux processes, even if they are not children of the
test.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest

NOBODY = 65534
"""The id of the user, and of the group, with the fewest rights."""


def python_for_others() -> str:
    """Return the path of a Python of this version that other users may run."""
    for path in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        real = Path(path).resolve()
        if real.exists() and all(p.stat().st_mode & 0o001 for p in [real, *real.parents]):
            return path
    pytest.skip("no Python here that an ordinary user could run")


def is_running(process: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return _stat(process)[0] != "Z"
    except OSError:
        return False


def parent_of(process: int) -> int:
    """Return the id of the parent of a process.

    Raises:
        OSError: there is no such process.
    """
    return int(_stat(process)[1])


def descendants_of(process: int) -> set[int]:
    """Return the ids of the running descendants of a process."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, *_ = _stat(int(entry.name))
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry.name))
    found, waiting = set[int](), [process]
    while waiting:
        new = children.get(waiting.pop(), [])
        found.update(new)
        waiting += new
    return found


def wait_until(condition: Callable[[], object], seconds: float = 60, failure: str = "") -> None:
    """Wait until a condition is true. After `seconds`, fail with the message `failure`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, failure
        time.sleep(0.02)


def wait_until_gone(processes: Iterable[int], seconds: float) -> None:
    """Wait until processes have ended, whether or not they are children of the test."""
    waited_for = [*processes]
    wait_until(lambda: not any(map(is_running, waited_for)), seconds, "a process is left")


def memory_of(process: int) -> bytes:
    """Return the content of all writable memory of a process, except the memory of libraries."""
    found = []
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if not rights.startswith("rw") or ".so" in line.partition("/")[2]:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            with suppress(OSError):
                memory.seek(start)
                found.append(memory.read(end - start))
    return b"".join(found)


def _stat(process: int) -> list[str]:
    """Return the kernel's data about a process, beginning with its state."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
