"""Endless code is stopped, but slow code that ends is not."""

from __future__ import annotations

import bdb
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from grader.code.time_limit import DoesNotEnd, time_limit
from tests.busy import busy_core


def loop() -> None:
    while True:
        with suppress(Exception):  # as in some students' code
            time.sleep(0)


def stubborn_loop() -> None:
    while True:
        try:
            time.sleep(10)
        except:  # noqa: E722  (as in some students' code)
            time.sleep(10)


def is_ended() -> bool:
    with pytest.raises(DoesNotEnd), time_limit(0.1):
        loop()
    return True


def in_thread(function: object) -> list[object]:
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(function()))  # type: ignore[operator]
    thread.start()
    thread.join()
    return results


def test_endless_code_is_ended() -> None:
    assert is_ended()
    with pytest.raises(DoesNotEnd), time_limit(0.1):
        time.sleep(600)


@pytest.mark.slow
def test_a_loop_that_catches_everything_is_ended() -> None:
    with pytest.raises(DoesNotEnd), time_limit(0.1):
        stubborn_loop()


def test_a_loop_in_another_thread_is_ended() -> None:
    assert in_thread(is_ended) == [True]


def in_time() -> bool:
    with time_limit(1):
        pass
    time.sleep(1.2)
    return True


@pytest.mark.slow
def test_code_that_ends_in_time_is_not_stopped() -> None:
    assert in_time()
    assert in_thread(in_time) == [True]


@pytest.mark.slow
def test_there_is_no_time_limit_in_a_debugger() -> None:
    debugger, before = bdb.Bdb(), sys.gettrace()
    debugger.reset()
    with time_limit(0.1):
        sys.settrace(debugger.trace_dispatch)
        try:
            time.sleep(0.3)
        finally:
            sys.settrace(before)


SLOW_BUT_RIGHT = """
import os, sys, time
from grader.code.time_limit import time_limit

os.sched_setaffinity(0, {int(sys.argv[1])})
start = time.thread_time()
with time_limit(0.5):
    while time.thread_time() < start + 0.2:
        pass
print("in time", flush=True)
"""


@pytest.mark.slow
def test_a_busy_machine_does_not_stop_finite_code() -> None:
    """The code needs 0.2 seconds of CPU time, and the limit is half a second of CPU time."""
    with busy_core(4) as core:
        command = [sys.executable, "-c", SLOW_BUT_RIGHT, str(core)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "in time\n", done.stderr
