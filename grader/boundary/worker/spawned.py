"""A worker that is a fresh interpreter, on systems and at levels without a prefork server."""

from __future__ import annotations

import pkgutil
import socket

from grader.boundary.protocol.wire import Memory, Ready, send
from grader.boundary.worker import serving
from grader.boundary.worker.student_file import hide_own_modules


def main(channel: socket.socket, memory: int | str, jobs: list[str]) -> None:
    """Say that this process is ready, and respond to requests.

    Args:
        channel: to the trusted process.
        memory: by what the shared memory is found.
        jobs: the names of what may be asked for beside calls.
    """
    known = {name: pkgutil.resolve_name(name) for name in jobs}
    hide_own_modules()
    send(channel, Ready(True))
    serving.main(channel, Memory.attached(memory), jobs=known)
