"""A worker that holds a problem's tests and runs them on a student's file by itself."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

from grader.boundary.frames import receive_frame, send_frame
from grader.boundary.worker.removal import refuse_later
from grader.boundary.worker.student_file import MODULE, Attempts, run_source
from grader.code.printed import Printed

_MOST_BYTES = 1 << 30
_MOST_PRINTED = 20_000


class LoadedSource(NamedTuple):
    """A student's file that was run as a module.

    Attributes:
        module: the module.
        error: what it raised, if anything.
        attempts: what it tried meanwhile, each as kind and name.
        called: where functions that were removed from this process note the first call.
        printed: returns what was printed since the last time.
    """

    module: ModuleType
    error: BaseException | None
    attempts: list[tuple[str, str]]
    called: list[str]
    printed: Callable[[], str]


RunOrder = Callable[[bytes, LoadedSource], Iterator[bytes]]
"""Runs the tests of an order on a student's file, and yields a message for each."""


def main(channel: socket.socket, called: list[str], run_tests: RunOrder) -> None:
    """Receive a student's file and an order of tests, and send a message after each test.

    Args:
        channel: to the trusted process.
        called: where functions that were removed from this process note the first call.
        run_tests: runs the tests; it was loaded before.
    """
    settings, source, order = (receive_frame(channel, _MOST_BYTES) for _ in range(3))
    setting = json.loads(settings)
    printed: Callable[[], str] = str
    if setting["capture"]:
        sys.stdout = sys.stderr = kept = Printed(_MOST_PRINTED)
        printed = kept.take
    refuse_later(setting["forbidden"], called)
    module, error, attempts = ModuleType(MODULE), None, Attempts()
    try:
        run_source(source, module)
    except BaseException as exception:
        error = exception
    called.clear()  # what was called while the file was loaded is no offence
    loaded = LoadedSource(module, error, attempts.found(), called, printed)
    for message in run_tests(order, loaded):
        send_frame(channel, message)
