"""Stop code that runs too long in the same process as the tests."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pytest_timeout import is_debugging  # type: ignore[import-untyped]

from grader.code.time_limit import NO_END, Limit, Stopwatch

_AGAIN_SECONDS = 2.0
"""The time until DoesNotEnd is raised again, in case the code caught it."""


class DoesNotEnd(BaseException):  # not an Exception: student code may catch those and go on
    """Code ran longer than its limit."""

    def __str__(self) -> str:
        return NO_END


def time_limit(seconds: float, stopwatch: Stopwatch | None = None) -> AbstractContextManager[None]:
    """Return a context in which DoesNotEnd is raised after the given time.

    Args:
        seconds: how long the code may run.
        stopwatch: a stopwatch that was just started, to reuse.

    Time in which the code only waited for a processor doesn't count (`code.time_limit`), if the
    system reports it.

    In the main thread an alarm of the operating system raises the exception. On Windows and in
    other threads a second thread does, but only between steps of Python code: a call of C code
    returns first. There is no limit in a debugger.
    """
    limit = Limit(seconds, stopwatch or Stopwatch())
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        return _alarm(limit)
    return _second_thread(limit)


if sys.platform != "win32":

    @contextmanager
    def _alarm(limit: Limit) -> Iterator[None]:
        def ring(*_: object) -> None:
            __tracebackhide__ = True
            try:
                signal.setitimer(signal.ITIMER_REAL, limit.left())
            except TimeoutError:
                if not is_debugging():
                    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
                    raise DoesNotEnd from None

        handler_before = signal.signal(signal.SIGALRM, ring)
        left_before, interval = signal.setitimer(signal.ITIMER_REAL, limit.left())
        start = time.monotonic()
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler_before or signal.SIG_DFL)
            if left_before:  # another alarm was set before
                left = left_before - (time.monotonic() - start)
                signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), interval)


@contextmanager
def _second_thread(limit: Limit) -> Iterator[None]:
    thread, trace, ended = threading.get_ident(), sys.gettrace(), threading.Event()

    def watch() -> None:
        try:
            while not ended.wait(limit.left()):
                pass
        except TimeoutError:
            if not is_debugging(trace):
                _raise_in(thread, DoesNotEnd)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()  # its exception is raised here at the latest


def _raise_in(thread: int, exception: type[BaseException]) -> None:
    """Make a thread raise an exception at its next step."""
    what = ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)
