"""Start the trusted processes of a run. They load the tests and torch; the command does not.

With a sandbox, each process is forked from a template process that has loaded torch, and each
process gets a prefork server. Without a sandbox, each process is a new interpreter, and there is no
prefork server.
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
    """A started process."""

    @property
    def exitcode(self) -> int | None:
        """The exit code; None while the process runs."""

    def is_alive(self) -> bool:
        """Return whether the process is still running."""

    def join(self, timeout: float) -> None:
        """Wait until the process exits. After `timeout` seconds, kill the process."""

    def kill(self) -> None:
        """Kill the process."""


Start = Callable[..., tuple[Process, Connection]]
"""A callable that starts a process, and returns the process and a connection to it.

The first argument names a function as `package.module:function`. The new process calls it. The
caller need not import its module, which may load torch. The function receives a connection to the
caller, a connection to a prefork server or None, and then the remaining arguments.
"""


@contextmanager
def processes(
    isolation: Isolation = Isolation.SANDBOX, *, with_prefork_server: bool = True
) -> Iterator[Start]:
    """Yield a function that starts processes. The processes exit at the end of the context.

    Args:
        isolation: the isolation of student code.
        with_prefork_server: whether each process has a prefork server. Student code needs one.
    """
    if isolation is not Isolation.SANDBOX or sys.platform != "linux":
        yield start_alone
        return
    template = TemplateProcess()
    with undisturbed():
        template.__enter__()
    try:
        yield partial(template.start, with_prefork_server=with_prefork_server)
    finally:
        with undisturbed():
            template.__exit__(None, None, None)


def call_apart(function: str, isolation: Isolation, *arguments: Any) -> Any:
    """Call a function in a separate trusted process, and return its result or raise its exception.

    Args:
        function: the name of the function as `package.module:function`. Its first argument is a
            connection to a prefork server, or None.
        isolation: the isolation of student code in the process.
        arguments: the remaining arguments of the function.
    """
    with processes(isolation) as start:
        process, connection = start(f"{__name__}:answer_call", function, arguments)
        with connection:
            try:
                is_value, result = connection.recv()
            except (EOFError, OSError):
                process.join(_GRACE_SECONDS)
                reason = f"the grader's process ended with exit code {process.exitcode}"
                raise InternalError(reason) from None
            except BaseException:
                process.kill()
                raise
        with undisturbed():
            process.join(_GRACE_SECONDS)
            process.kill()
    if not is_value:
        raise result
    return result


def answer_call(
    connection: Connection,
    prefork_server: socket.socket | None,
    function: str,
    arguments: tuple[Any, ...],
) -> None:
    """Call `function` in the process that `call_apart` started, and send the result back."""
    try:
        answer = True, pkgutil.resolve_name(function)(prefork_server, *arguments)
    except (CourseError, InternalError, SubmissionError, UsageError) as error:
        answer = False, error
    with suppress(BrokenPipeError):
        connection.send(answer)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C and hangup signals in this context.

    Processes that are started in the context ignore these signals until they exit.
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
