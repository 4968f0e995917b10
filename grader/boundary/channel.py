"""A channel to a process that carries out requests, one at a time."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from typing import Any

from grader.boundary.interpreter import START_SECONDS
from grader.errors import InternalError

_ASK_SECONDS = 60.0


class BoundaryError(InternalError):
    """The boundary itself can't do its work: the grader's own fault, never a student's."""


class RequestChannel:
    """The connection to a process that carries out requests. Linux only.

    Args:
        channel: carries one message at a time.
        name: what the process is called.
    """

    def __init__(self, channel: socket.socket, name: str) -> None:
        self._channel = channel
        self._name = name
        self._count = 0
        self._channel.settimeout(START_SECONDS)

    def wait_until_ready(self) -> Any:
        """Read the first message, where the process sends one by itself.

        Raises:
            BoundaryError: there is none.
        """
        try:
            told = json.loads(self._channel.recv(4096))
        except (OSError, ValueError):
            raise BoundaryError(f"{self._name} did not start") from None
        self._channel.settimeout(_ASK_SECONDS)
        return told

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message that is not answered; what is wrong with it shows later."""
        try:
            self._channel.send(json.dumps(message).encode())
        except OSError:
            raise BoundaryError(f"{self._name} did not start") from None

    def ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        """Send a request, and return what is answered.

        Raises:
            BoundaryError: nothing is.
        """
        self._count += 1
        text = json.dumps(request | {"id": self._count}).encode()
        try:
            socket.send_fds(self._channel, [text], descriptors)
            deadline = time.monotonic() + (self._channel.gettimeout() or _ASK_SECONDS)
            while time.monotonic() < deadline:
                answer = json.loads(self._channel.recv(4096))
                # An answer to a request that was interrupted may still lie there.
                if answer["id"] == self._count:
                    return answer
        except (OSError, ValueError):
            pass
        raise BoundaryError(f"{self._name} does not answer")

    def close(self) -> None:
        """Let it end."""
        self._channel.close()
