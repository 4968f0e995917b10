"""Boundaries of tests, all from one interpreter that has loaded torch, as grading has them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle

from grader.boundary import Boundary
from grader.boundary.siblings import Siblings
from tests.processes import below, wait_until_gone

HANG_SECONDS = 120


def lend(connection: Connection, fork_server: socket.socket) -> None:
    """Hand the fork server over that came with this process, which has nothing else to do.

    Args:
        connection: to the test that wants it.
        fork_server: the connection to it.
    """
    send_handle(connection, fork_server.fileno(), None)
    fork_server.close()
    with suppress(EOFError):
        connection.recv()


@contextmanager
def lent_boundary(siblings: Siblings, **options: object) -> Iterator[Boundary]:
    """Enter a sandbox whose fork server comes from siblings; afterwards no process of it is left.

    Args:
        siblings: what to fork from.
        options: of the boundary.
    """
    process, connection = siblings.start("tests.lent:lend")
    with connection:
        fork_server = socket.socket(fileno=recv_handle(connection))
    process.join(HANG_SECONDS)
    with Boundary("sandbox", fork_server=fork_server, **options) as boundary:  # type: ignore[arg-type]
        assert boundary._workers is not None
        yield boundary
        ends = [id for first in boundary._workers.processes for id in (first, *below(first))]
    wait_until_gone(ends, HANG_SECONDS)
