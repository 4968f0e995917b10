"""Starts trusted processes, each beside a fork server: both are forks of one clean interpreter.

    with Siblings() as siblings:
        process, connection = siblings.start("grader.grading.job:serve", course)

runs `serve(connection, fork_server, course)` of that module in a process that has torch loaded
already, where `ForkedWorkers(..., fork_server=fork_server)` starts no interpreter. On Linux only.
`zygote` says who inherits what. This module does without torch.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from grader.boundary.channel import BoundaryError, RequestChannel
from grader.boundary.interpreter import BOOT, boot, message_pair, wait_or_kill

_BOOT_ZYGOTE = BOOT.format(module="zygote") + "main(channel, globals().pop('config'))\n"


_END_SECONDS = 15.0


class Siblings:
    """A clean interpreter to fork from. A context manager, which starts and ends it."""

    def __enter__(self) -> Self:
        """Start it."""
        self._boot()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it, and all that was forked from it."""
        self._channel.close()
        wait_or_kill(self._process, _END_SECONDS)

    def _boot(self) -> None:
        ours, theirs = message_pair()
        self._process = boot(_BOOT_ZYGOTE, theirs, {"parent": os.getpid()}, quiet=False)
        self._channel = RequestChannel(ours, "the process that loads torch")

    def start(self, target: str, *arguments: object) -> tuple[TrustedProcess, Connection]:
        """Start a trusted process, and return it with the connection to it.

        Args:
            target: the function that it runs, as `package.module:function`: with its end of the
                connection, a connection to its fork server, and the arguments.
            arguments: have to go through pickle.

        Raises:
            BoundaryError: that wasn't possible.
        """
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            process = self._forked(theirs.fileno())
        with suppress(BrokenPipeError, ConnectionResetError):  # it died; who asks it notices
            ours.send_bytes(json.dumps(_setup()).encode())
            ours.send((target, arguments))
        return TrustedProcess(self._channel, process), ours

    def _forked(self, connection: int) -> int:
        try:
            answer = self._channel.ask({"do": "start"}, [connection])
        except BoundaryError:
            # It may have been killed. A new one serves from now on.
            self.__exit__(None, None, None)
            self._boot()
            answer = self._channel.ask({"do": "start"}, [connection])
        return int(answer["process"])


def _setup() -> dict[str, object]:
    """Return what makes another interpreter like this one."""
    return {
        "environment": dict(os.environ),
        "path": [str(entry) for entry in sys.path],
        "arguments": sys.argv,
        "dont_write_bytecode": sys.dont_write_bytecode,
    }


class TrustedProcess:
    """A trusted process, with the methods that `multiprocessing` gives to its own.

    Attributes:
        exitcode: how it ended, -N after signal N; None while it lives or where that isn't known.
    """

    def __init__(self, channel: RequestChannel, process: int) -> None:
        self._channel = channel
        self._process = process
        self._ended = False
        self.exitcode: int | None = None

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        self._ask({"do": "look"})
        return not self._ended

    def join(self, timeout: float) -> None:
        """Wait until it has ended by itself, and end it after so many seconds."""
        self._ask({"do": "end", "grace": timeout})

    def kill(self) -> None:
        """End it at once."""
        self.join(0.0)

    def _ask(self, request: dict[str, object]) -> None:
        if self._ended:
            return
        try:
            self.exitcode = self._channel.ask(request | {"process": self._process})["code"]
            self._ended = self.exitcode is not None
        except BoundaryError:
            self._ended = True  # with the one that it was forked from
