"""How long code may run, without the time in which other programs had the processors.

A mark must not depend on what else a machine has to do, so a clock on the wall is no judge of slow
code. Linux tells of each thread how long it ran and how long it waited, ready to run, for a
processor. What is charged is all time but that waiting. Processor time alone would let a program
sleep for ever, and would charge torch's threads, which wait for each other in loops, one by one.

Who holds code to a limit: at home `grader.code.interrupt`, which raises an exception in it; in
grading `grader.sandbox.recorder`, which ends the worker when a test takes too long.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

TIMEOUT_SECONDS = 10.0
"""How long one test may run at home, and one call in grading; and a file, while it is imported.

The slowest takes less than one.
"""

NO_END = "Your code did not come to an end."
"""What the student reads of code that was ended."""

NO_END_OF_FILE = "problem.py does not come to an end while it is being imported."
"""What the student reads of a file that was ended before its last line."""

WALL_FACTOR = 20
"""How many times as long as it may a thing can take by the clock on the wall, on any machine."""

_NANOSECONDS = 1e9
_SHORTEST_WAIT = 0.05

_Threads = dict[str, tuple[float, float]]


class Stopwatch:
    """Measures a process from now on.

    Args:
        process: its id; None for the process that asks. If it is another one, the time for which
            this thread here waits for a processor isn't charged either.
    """

    def __init__(self, process: int | None = None) -> None:
        self._folder = f"/proc/{process or os.getpid()}/task"
        own = f"/proc/{os.getpid()}/task/{threading.get_native_id()}/schedstat"
        self._observer = None if process is None else own
        self.restart()

    def restart(self) -> None:
        """Measure from now on."""
        self._start, self._observed = self._read(), self._observer_waited()

    def seconds(self, wall: float) -> float:
        """Return how much of `wall` seconds since the start is charged.

        That is all but what the threads waited for a processor, and no less than the longest of
        them ran. Where the system doesn't tell that, or the process is gone, it is all.
        """
        now = self._read() if self._start else {}
        if not now:
            return wall
        longest, waited = 0.0, self._observer_waited() - self._observed
        for thread, (ran, waits) in now.items():
            ran_before, waits_before = self._start.get(thread, (0.0, 0.0))
            longest = max(longest, ran - ran_before)
            waited += waits - waits_before
        return min(wall, max(longest, wall - waited))

    def _read(self) -> _Threads:
        """Return for each thread the seconds that it ran and waited; nothing if nobody tells."""
        found: _Threads = {}
        with suppress(OSError):
            for thread in os.listdir(self._folder):
                with suppress(OSError):  # it may have ended just now
                    found[thread] = _ran_and_waited(f"{self._folder}/{thread}/schedstat")
        return found

    def _observer_waited(self) -> float:
        with suppress(OSError):
            return _ran_and_waited(self._observer)[1] if self._observer else 0.0
        return 0.0


def _ran_and_waited(path: str) -> tuple[float, float]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        ran, waited, _ = os.read(descriptor, 100).split()
    finally:
        os.close(descriptor)
    return int(ran) / _NANOSECONDS, int(waited) / _NANOSECONDS


class Limit:
    """How long something may go on: by a stopwatch, and far behind by the clock on the wall.

    Args:
        seconds: how long by the stopwatch.
        stopwatch: measures it.
        before: seconds on the wall that the stopwatch had been running when this began.
    """

    def __init__(self, seconds: float, stopwatch: Stopwatch, before: float = 0.0) -> None:
        self._seconds = seconds
        self._stopwatch = stopwatch
        self._before = before
        self._started = time.monotonic()
        self._look_at = seconds  # it can't be used up sooner

    @property
    def wall(self) -> float:
        """How many seconds it has taken by the clock on the wall."""
        return time.monotonic() - self._started

    def left(self) -> float:
        """Return for how many seconds one may wait before asking again.

        Raises:
            TimeoutError: the time is used up.
        """
        wall = self.wall
        if wall >= self._look_at:
            used, most = self._stopwatch.seconds(self._before + wall), self._seconds * WALL_FACTOR
            if used >= self._seconds or wall >= most:
                raise TimeoutError
            self._look_at = min(wall + max(self._seconds - used, _SHORTEST_WAIT), most)
        return self._look_at - wall
