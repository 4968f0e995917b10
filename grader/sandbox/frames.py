"""Messages of plain bytes between a worker and the trusted side, each behind its length."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable

_LENGTH = struct.Struct("<I")
_AT_ONCE = 1 << 20

Left = Callable[[], float]
"""Returns for how many seconds one may wait before asking again; raises TimeoutError at the end."""


class ProtocolError(Exception):
    """What arrived isn't a message."""


class Closed(Exception):  # noqa: N818  (an event)
    """The other side closed the connection."""


def within(seconds: float) -> Left:
    """Return what tells how much is left of so many seconds from now."""
    deadline = time.monotonic() + seconds

    def left() -> float:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    return left


def send_frame(channel: socket.socket, content: bytes) -> None:
    """Send a message."""
    channel.sendall(_LENGTH.pack(len(content)))
    channel.sendall(content)


def receive_frame(channel: socket.socket, most: int, left: Left | None = None) -> bytes:
    """Return the next message.

    Args:
        channel: brings it.
        most: how many bytes it may have.
        left: returns for how many seconds one may wait, or raises TimeoutError; None to wait for
            ever.

    Raises:
        Closed: the other side closed the connection.
        ProtocolError: it is too long.
        TimeoutError: it took too long.
    """
    (size,) = _LENGTH.unpack(_received(channel, _LENGTH.size, left))
    if size > most:
        raise ProtocolError("a message is too long")
    return _received(channel, size, left)


def _received(channel: socket.socket, size: int, left: Left | None) -> bytes:
    found = bytearray()
    while len(found) < size:
        while left is not None and not select.select([channel], [], [], left())[0]:
            pass
        part = channel.recv(min(size - len(found), _AT_ONCE))
        if not part:
            raise Closed
        found += part
    return bytes(found)
