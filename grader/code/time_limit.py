"""Limit the run time of code. The time in which it waits for a processor does not count.

A mark must not depend on the load of the machine, so wall time is not suitable. CPU time does not
limit a program that sleeps, and it counts torch's threads while they wait for each other in loops.
Therefore the limit applies to the charged time: wall time without the time in which threads were
ready to run but waited for a processor. Linux reports this waiting time for each thread.

At home `time_limit` raises an exception. In grading `grader.sandbox.recorder` ends the worker.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

TIMEOUT_SECONDS = 10.0
"""The time limit for one test at home, for one call in grading, and for the import of a file.

For comparison, the slowest test takes less than a second.
"""

NO_END = "Your code did not finish in time."
"""The message to a student if the code exceeded its time limit."""

NO_END_OF_FILE = "problem.py does not finish while it is being imported."
"""The message to a student if the file exceeded the time limit while it was imported."""

WALL_FACTOR = 20
"""The maximum ratio of wall time to the limit on charged time."""

_NANOSECONDS = 1e9
_SHORTEST_WAIT = 0.05

_Threads = dict[str, tuple[float, float]]


class Stopwatch:
    """Measures the charged time of a process since the stopwatch was created.

    Args:
        process: the process id; None for this process. For another process, the waiting time of the
            thread that uses the stopwatch is not charged either.
    """

    def __init__(self, process: int | None = None) -> None:
        self._folder = f"/proc/{process or os.getpid()}/task"
        waiting = f"/proc/{os.getpid()}/task/{threading.get_native_id()}/schedstat"
        self._observer = None if process is None else waiting
        self.restart()

    def restart(self) -> None:
        """Start to measure again from 0."""
        self._start, self._observed = self._read(), self._observer_waited()

    def seconds(self, wall: float) -> float:
        """Return the charged time since the start in seconds.

        This is wall time without the time in which threads waited for a processor. It is at least
        the run time of the thread that ran longest. If the system doesn't report these times, or
        the process has ended, return `wall`.

        Args:
            wall: the wall time since the start in seconds.
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
        """Return for each thread the seconds for which it ran and waited, or {} if unknown."""
        seconds: _Threads = {}
        with suppress(OSError):
            for thread in os.listdir(self._folder):
                with suppress(OSError):  # the thread may have ended
                    seconds[thread] = _ran_and_waited(f"{self._folder}/{thread}/schedstat")
        return seconds

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
    """A limit on charged time, and a much larger limit on wall time.

    Args:
        seconds: the limit on charged time.
        stopwatch: the stopwatch that measures charged time.
        before: the wall time in seconds between the start of the stopwatch and the creation of
            this limit.
    """

    def __init__(self, seconds: float, stopwatch: Stopwatch, before: float = 0.0) -> None:
        self._seconds = seconds
        self._stopwatch = stopwatch
        self._before = before
        self._started = time.monotonic()
        self._check_at = seconds  # reading the stopwatch earlier would be slow

    @property
    def wall(self) -> float:
        """The wall time since the limit was created, in seconds."""
        return time.monotonic() - self._started

    def left(self) -> float:
        """Return how many seconds to wait before calling `left` again.

        Raises:
            TimeoutError: the limit is exceeded.
        """
        wall = self.wall
        if wall >= self._check_at:
            used, most = self._stopwatch.seconds(self._before + wall), self._seconds * WALL_FACTOR
            if used >= self._seconds or wall >= most:
                raise TimeoutError
            self._check_at = min(wall + max(self._seconds - used, _SHORTEST_WAIT), most)
        return self._check_at - wall


_AGAIN_SECONDS = 2.0
"""The time after which DoesNotEnd is raised again, if student code caught it."""


class DoesNotEnd(BaseException):  # student code often catches Exception
    """Code ran longer than its limit."""

    def __str__(self) -> str:
        return NO_END


def time_limit(seconds: float, stopwatch: Stopwatch | None = None) -> AbstractContextManager[None]:
    """Return a context in which DoesNotEnd is raised after a time limit.

    In the main thread, an alarm of the operating system raises the exception. On Windows and in
    other threads, a second thread raises it, which can't interrupt a call of C code. In a debugger
    there is no limit.

    Args:
        seconds: the limit on charged time.
        stopwatch: a stopwatch that was just started; by default a new stopwatch.
    """
    limit = Limit(seconds, stopwatch or Stopwatch())
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        return _alarm(limit)
    return _second_thread(limit)


@contextmanager
def _alarm(limit: Limit) -> Iterator[None]:
    assert sys.platform != "win32"

    def ring(*_: object) -> None:
        __tracebackhide__ = True
        try:
            signal.setitimer(signal.ITIMER_REAL, limit.left())
        except TimeoutError:
            if not _is_debugging():
                signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
                raise DoesNotEnd from None

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit.left())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


@contextmanager
def _second_thread(limit: Limit) -> Iterator[None]:
    thread, trace, ended = threading.get_ident(), sys.gettrace(), threading.Event()

    def watch() -> None:
        try:
            while not ended.wait(limit.left()):
                pass
        except TimeoutError:
            if not _is_debugging(trace):
                number, exception = ctypes.c_ulong(thread), ctypes.py_object(DoesNotEnd)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, exception)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()  # if the watcher raised DoesNotEnd, it arrives here at the latest


def _is_debugging(trace: object = None) -> bool:
    from pytest_timeout import is_debugging  # type: ignore[import-untyped]

    return bool(is_debugging(trace))
