"""Tries the sandbox: what a trusted process does for `doctor`."""

from __future__ import annotations

import socket

from grader.boundary.boundary import Boundary


def try_sandbox(prefork_server: socket.socket | None) -> None:
    """Start the sandbox, attack it as every run does, and end it.

    Args:
        prefork_server: the connection to one that was started with this process, if any was.

    Raises:
        BoundaryError: there is none, or it has a hole; the text says why.
    """
    with Boundary(prefork_server=prefork_server):
        pass
