"""Connect to a worker that runs tests and sends a message after each test."""

from __future__ import annotations

import json
import time

from grader.code.time_limit import NO_END, Limit, Stopwatch
from grader.errors import TIME_USED_UP
from grader.result import Status
from grader.sandbox.failures import BAD_OUTPUT, WorkerFailure, failure_of
from grader.sandbox.frames import Closed, ProtocolError, receive_frame, send_frame
from grader.sandbox.spawn import WorkerProcess
from grader.sandbox.starting import RESPONSE_SECONDS

_MOST_BYTES = 34 << 20
"""The maximum number of bytes of one message."""

_READ_AFTER = 0.1
_GRACE_SECONDS = 2.0


class SubmissionBudget:
    """The time that is left for a submission.

    Time in which the worker only waited for a processor doesn't count; see `code.time_limit`.

    Args:
        call_seconds: the time limit of one call in seconds.
        seconds: the time limit of all calls together in seconds.

    Attributes:
        call_seconds: the argument of the same name.
        left: the remaining seconds.
    """

    def __init__(self, call_seconds: float, seconds: float) -> None:
        self.call_seconds = call_seconds
        self.left = seconds

    def spend(self, seconds: float) -> None:
        """Subtract used time in seconds."""
        self.left = max(0.0, self.left - seconds)


class Recorder:
    """The connection to one worker. The constructor sends the student's file and an order.

    Args:
        process: the worker.
        budget: the time limits of each message and of all messages together.
        settings: the `forbidden` functions, and whether to `capture` printed text.
        source: the student's file.
        order: an encoded list of the tests to run.

    Raises:
        WorkerFailure: the worker did not receive the order.
    """

    def __init__(
        self,
        process: WorkerProcess,
        budget: SubmissionBudget,
        settings: dict[str, object],
        source: bytes,
        order: bytes,
    ) -> None:
        self._process = process
        self._budget = budget
        self._dead = False
        process.channel.settimeout(RESPONSE_SECONDS)
        try:
            for frame in (json.dumps(settings).encode(), source, order):
                send_frame(process.channel, frame)
        except OSError:
            raise self._failure() from None
        self._stopwatch = Stopwatch(process.pid)
        self._unread = 0.0  # seconds of waiting since the stopwatch was last read

    def receive(self, time_limit: float | None = None) -> tuple[bytes, float]:
        """Return the next message, and the wall time until it arrived, in seconds.

        Args:
            time_limit: the time limit in seconds; by default the limit of one call.

        Raises:
            WorkerFailure: the message took too long or is too large, or the worker ended.
        """
        limit_of_call = self._budget.call_seconds if time_limit is None else time_limit
        seconds = min(limit_of_call, self._budget.left)
        if seconds <= 0:
            self.close()
            raise WorkerFailure(Status.TIMEOUT, TIME_USED_UP)
        limit, started = Limit(seconds, self._stopwatch, self._unread), time.monotonic()
        try:
            try:
                message = receive_frame(self._process.channel, _MOST_BYTES, limit.left)
            finally:
                wall = time.monotonic() - started
                self._charge(wall)  # the worker's time can't be measured after its end
        except TimeoutError:
            self.close()
            raise WorkerFailure(Status.TIMEOUT, NO_END) from None
        except (Closed, ConnectionError):
            raise self._failure() from None
        except (ProtocolError, MemoryError):
            self.close()
            raise WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}.") from None
        except BaseException:
            self.close()
            raise
        return message, wall

    def close(self) -> None:
        """End the worker, unless it has ended already."""
        if not self._dead:
            self._dead = True
            self._process.end()

    def _failure(self) -> WorkerFailure:
        self._dead = True
        return failure_of(self._process.end(_GRACE_SECONDS))

    def _charge(self, wall: float) -> None:
        self._unread += wall
        if self._unread >= _READ_AFTER:  # reading the stopwatch takes longer than some tests
            self._budget.spend(self._stopwatch.seconds(self._unread))
            self._unread = 0.0
            self._stopwatch.restart()
