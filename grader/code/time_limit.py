"""Measure the run time of code without the time in which other programs had the processors.

A mark must not depend on a machine's load, so the wall clock can't decide. Linux reports for each
thread how long it ran and how long it waited, ready to run, for a processor. The charged time is
all time except this waiting. CPU time would not limit a program that sleeps. It would also add up
torch's threads, which wait for each other in loops.

Limits are enforced at home by `time_limit`, which raises an exception, and in grading by
`grader.sandbox.recorder`, which ends the worker.
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
"""The time limit of one test at home, of one call in grading, and of the import of a file.

The slowest test takes less than a second.
"""

NO_END = "Your code did not finish in time."
"""The message to the student for code that was stopped."""

NO_END_OF_FILE = "problem.py does not finish while it is being imported."
"""The message to the student for a file that was stopped while it was imported."""

WALL_FACTOR = 20
"""The factor by which wall time may exceed a limit, on any machine."""

_NANOSECONDS = 1e9
_SHORTEST_WAIT = 0.05

_Threads = dict[str, tuple[float, float]]


class Stopwatch:
    """Measures the charged time of a process, from the creation of the stopwatch on.

    Args:
        process: the process id; None for this process. For another process, the time in which the
            calling thread waits for a processor isn't charged either.
    """

    def __init__(self, process: int | None = None) -> None:
        self._folder = f"/proc/{process or os.getpid()}/task"
        waiting = f"/proc/{os.getpid()}/task/{threading.get_native_id()}/schedstat"
        self._observer = None if process is None else waiting
        self.restart()

    def restart(self) -> None:
        """Start measuring again."""
        self._start, self._observed = self._read(), self._observer_waited()

    def seconds(self, wall: float) -> float:
        """Return how much of `wall` seconds since the start is charged.

        The time in which threads waited for a processor is not charged. At least the longest run
        time of a thread is charged. If the system doesn't report these times, or the process has
        ended, all of `wall` is charged.
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
        """Return the seconds that each thread ran and waited; empty if they are unknown."""
        seconds: _Threads = {}
        with suppress(OSError):
            for thread in os.listdir(self._folder):
                with suppress(OSError):  # it may have ended just now
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
        before: the wall time for which the stopwatch has been running already, in seconds.
    """

    def __init__(self, seconds: float, stopwatch: Stopwatch, before: float = 0.0) -> None:
        self._seconds = seconds
        self._stopwatch = stopwatch
        self._before = before
        self._started = time.monotonic()
        self._look_at = seconds  # the limit can't be exceeded earlier

    @property
    def wall(self) -> float:
        """The wall time since the start in seconds."""
        return time.monotonic() - self._started

    def left(self) -> float:
        """Return how many seconds to wait before calling `left` again.

        Raises:
            TimeoutError: the limit is exceeded.
        """
        wall = self.wall
        if wall >= self._look_at:
            used, most = self._stopwatch.seconds(self._before + wall), self._seconds * WALL_FACTOR
            if used >= self._seconds or wall >= most:
                raise TimeoutError
            self._look_at = min(wall + max(self._seconds - used, _SHORTEST_WAIT), most)
        return self._look_at - wall


_AGAIN_SECONDS = 2.0
"""The time until DoesNotEnd is raised again, in case the code caught it."""


class DoesNotEnd(BaseException):  # not an Exception, which student code may catch
    """Code ran longer than its limit."""

    def __str__(self) -> str:
        return NO_END


def time_limit(seconds: float, stopwatch: Stopwatch | None = None) -> AbstractContextManager[None]:
    """Return a context in which DoesNotEnd is raised after a time limit.

    In the main thread, an alarm of the operating system raises the exception. On Windows and in
    other threads, a second thread raises it, but only between steps of Python code: a call of C
    code returns first. There is no limit in a debugger.

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
        watcher.join()  # its exception is raised here at the latest


def _is_debugging(trace: object = None) -> bool:
    from pytest_timeout import is_debugging  # type: ignore[import-untyped]

    return bool(is_debugging(trace))
