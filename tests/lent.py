"""Fork the sandboxes of tests from one interpreter that has loaded torch, as in grading."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from types import SimpleNamespace

import pytest

from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import TemplateProcess
from tests.processes import descendants_of, wait_until_gone

HANG_SECONDS = 120


@contextmanager
def lent_template(template: TemplateProcess) -> Iterator[None]:
    """Let grading in the test process fork its sandboxes from `template`.

    Otherwise each run would start an interpreter and load torch. This takes longer
    than grading a few submissions.
    """
    kept = SimpleNamespace(
        start=template.start, __enter__=lambda: None, __exit__=lambda *exception: None
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.grade.processes.TemplateProcess", lambda: kept)
        alone = partial(template.start, with_prefork_server=False)
        patch.setattr("grader.grade.processes.start_alone", alone)
        yield


def lend(connection: Connection, prefork_server: socket.socket) -> None:
    """Send a test the connection to a prefork server, and wait until the test has received it.

    Args:
        connection: the connection to the test.
        prefork_server: the connection to the prefork server.
    """
    send_handle(connection, prefork_server.fileno(), None)
    prefork_server.close()
    with suppress(EOFError):
        connection.recv()


def lent_prefork_server(template: TemplateProcess) -> socket.socket:
    process, connection = template.start("tests.lent:lend")
    with connection:
        prefork_server = socket.socket(fileno=recv_handle(connection))
    process.join(HANG_SECONDS)
    return prefork_server


@contextmanager
def lent_sandbox(template: TemplateProcess, **options: object) -> Iterator[Sandbox]:
    """Yield a sandbox whose prefork server is forked from a template.

    At exit, wait until the processes of the sandbox have ended.

    Args:
        template: the process to fork from.
        options: options of the sandbox.
    """
    prefork_server = lent_prefork_server(template)
    with Sandbox(prefork_server=prefork_server, **options) as sandbox:  # type: ignore[arg-type]
        assert sandbox._workers is not None
        yield sandbox
        ends = [
            id for first in sandbox._workers.processes for id in (first, *descendants_of(first))
        ]
    wait_until_gone(ends, HANG_SECONDS)
