"""Ends code that runs for too long, in the process that it shares with the tests."""

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
"""How long after the first DoesNotEnd another one is raised, in code that caught it."""


class DoesNotEnd(BaseException):  # not an Exception: student code may catch those and go on
    """Code ran for longer than it may."""

    def __str__(self) -> str:
        return NO_END


def time_limit(seconds: float, stopwatch: Stopwatch | None = None) -> AbstractContextManager[None]:
    """Return a context in which DoesNotEnd is raised once it has run for so many seconds.

    Args:
        seconds: how long it may run.
        stopwatch: one that was started just now, which saves to start another.

    Time in which the code only waited for a processor doesn't count (`code.time_limit`), where the
    system tells it.

    In the main thread an alarm of the operating system does that. Where there is none, as on
    Windows and in other threads, a second thread does, and it reaches only what runs Python: code
    that waits in C ends the wait first. Nobody is hurried who looks at their code in a debugger.
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
            if left_before:  # an alarm that somebody else had set
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
        watcher.join()  # what it may still have raised comes up here at the latest


def _raise_in(thread: int, exception: type[BaseException]) -> None:
    """Have a thread raise an exception at its next step."""
    what = ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)
