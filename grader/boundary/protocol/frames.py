"""Messages of plain bytes, each behind its length."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable

from grader.boundary.protocol.wire import Closed, ProtocolError

_LENGTH = struct.Struct("<I")
_AT_ONCE = 1 << 20


def send_frame(channel: socket.socket, content: bytes) -> None:
    """Send a message."""
    channel.sendall(_LENGTH.pack(len(content)))
    channel.sendall(content)


def receive_frame(
    channel: socket.socket, most: int, left: Callable[[], float] | None = None
) -> bytes:
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


def _received(channel: socket.socket, size: int, left: Callable[[], float] | None) -> bytes:
    found = bytearray()
    while len(found) < size:
        while left is not None and not select.select([channel], [], [], left())[0]:
            pass
        part = channel.recv(min(size - len(found), _AT_ONCE))
        if not part:
            raise Closed
        found += part
    return bytes(found)
