"""Starts the trusted processes of a run, which hold the tests. The command does without torch.

Behind a sandbox each comes with a prefork server that has torch loaded already, as it has itself.
Elsewhere it is a fresh interpreter that loads torch, and there is no prefork server.
"""

from __future__ import annotations

import pkgutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Protocol

from grader.errors import CourseError, InternalError, SubmissionError, UsageError
from grader.result import Isolation
from grader.sandbox.starting import TemplateProcess, start_alone

_GRACE_SECONDS = 5.0
_OF_A_TERMINAL = [signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


class Process(Protocol):
    """A process that was started."""

    @property
    def exitcode(self) -> int | None:
        """How it ended."""

    def is_alive(self) -> bool:
        """Return whether it has not ended."""

    def join(self, timeout: float) -> None:
        """Give it so many seconds to end by itself, and end it then."""

    def kill(self) -> None:
        """End it at once."""


Start = Callable[..., tuple[Process, Connection]]
"""Starts a process that runs a function, named as `package.module:function`, with arguments.

The first two are a connection to this process, and one to a prefork server or None. By name, so
that this process need not import what it takes torch to import.
"""


@contextmanager
def processes(isolation: Isolation = Isolation.SANDBOX, *, beside: bool = True) -> Iterator[Start]:
    """Give what starts processes, for as long as this context lasts.

    Args:
        isolation: the level at which they will run students' code.
        beside: whether each has a prefork server beside it; no if they run none.
    """
    if isolation is not Isolation.SANDBOX or sys.platform != "linux":
        yield start_alone
        return
    template = TemplateProcess()
    with undisturbed():
        template.__enter__()
    try:
        yield partial(template.start, beside=beside)
    finally:
        with undisturbed():
            template.__exit__(None, None, None)


def call_apart(function: str, isolation: Isolation, *arguments: Any) -> Any:
    """Call a function in a trusted process of its own, and return or raise what it does.

    Args:
        function: named as `package.module:function`; it is called with a connection to a fork
            server, or None, and the arguments.
        isolation: the level at which it will run students' code.
        arguments: the function's.
    """
    with processes(isolation) as start:
        process, connection = start(f"{__name__}:answer_call", function, arguments)
        with connection:
            try:
                is_value, found = connection.recv()
            except (EOFError, OSError):
                process.join(_GRACE_SECONDS)
                reason = f"the grader's process ended with {process.exitcode}"
                raise InternalError(reason) from None
            except BaseException:
                process.kill()
                raise
        with undisturbed():
            process.join(_GRACE_SECONDS)
            process.kill()
    if not is_value:
        raise found
    return found


def answer_call(
    connection: Connection,
    prefork_server: socket.socket | None,
    function: str,
    arguments: tuple[Any, ...],
) -> None:
    """Do what `call_apart` wants, in the process that it started."""
    try:
        answer = True, pkgutil.resolve_name(function)(prefork_server, *arguments)
    except (CourseError, InternalError, SubmissionError, UsageError) as error:
        answer = False, error
    with suppress(BrokenPipeError):
        connection.send(answer)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore for a moment what the terminal sends to all processes: Ctrl-C, and its own end.

    A process that is started meanwhile ignores it for good: this one ends it in good order.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, signal.SIG_IGN) for each in _OF_A_TERMINAL}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
