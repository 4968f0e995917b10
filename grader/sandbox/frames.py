"""Length-prefixed messages of bytes between a worker and the trusted process."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable

_LENGTH = struct.Struct("<I")
_AT_ONCE = 1 << 20

TimeLeft = Callable[[], float]
"""A function that returns the number of seconds to wait. After this time, call it again.

It raises TimeoutError when the time limit is reached.
"""


class ProtocolError(Exception):
    """The received bytes are not a valid message."""


class Closed(Exception):  # noqa: N818  (an event, not an error)
    """The peer closed the connection."""


def within(seconds: float) -> TimeLeft:
    """Start a time limit, and return a function that returns the remaining seconds."""
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


def receive_frame(
    channel: socket.socket, max_bytes: int, time_left: TimeLeft | None = None
) -> bytes:
    """Return the next message.

    Args:
        channel: the connection to read from.
        max_bytes: the maximum number of bytes of the message.
        time_left: returns how many seconds to wait, or raises TimeoutError. If it is None, wait
            forever.

    Raises:
        Closed: the peer closed the connection.
        ProtocolError: the message is too long.
        TimeoutError: the message took too long.
    """
    (size,) = _LENGTH.unpack(_received(channel, _LENGTH.size, time_left))
    if size > max_bytes:
        raise ProtocolError("a message is too long")
    return _received(channel, size, time_left)


def _received(channel: socket.socket, size: int, time_left: TimeLeft | None) -> bytes:
    content = bytearray()
    while len(content) < size:
        while time_left is not None and not select.select([channel], [], [], time_left())[0]:
            pass
        part = channel.recv(min(size - len(content), _AT_ONCE))
        if not part:
            raise Closed
        content += part
    return bytes(content)
