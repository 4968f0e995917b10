"""The connection to one worker: requests, responses, deadlines, and what to make of a silence."""

from __future__ import annotations

import time
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from torch import Tensor

from grader.boundary.failures import BAD_OUTPUT, WorkerFailure, failure_of
from grader.boundary.frames import Closed, ProtocolError
from grader.boundary.protocol.codec import NAMES, Received, tensors_of
from grader.boundary.protocol.wire import (
    RESPONSES_AT,
    Request,
    Response,
    clean_text,
    read_response,
    receive,
    send,
)
from grader.boundary.recorder import SubmissionBudget
from grader.boundary.spawn import WorkerEnding, WorkerProcess
from grader.boundary.starting import BoundaryError
from grader.code.time_limit import NO_END, Limit, Stopwatch
from grader.errors import TIME_USED_UP
from grader.result import Status

_FULL = "Your code keeps more of what it is given than fits into memory."

_READ_AFTER = 0.1
_SMALLEST = 64
_GRACE_SECONDS = 2.0


class Connection:
    """The connection to one live worker.

    Args:
        process: the worker.
        budget: how long it may take.
        printed: what the student's code prints is added here, if the worker keeps it.

    Attributes:
        dead: whether the worker ended.
        memory: what it shares with this process.
    """

    def __init__(
        self, process: WorkerProcess, budget: SubmissionBudget, printed: list[str] | None = None
    ) -> None:
        self.memory = process.memory
        self._process = process
        self._printed = printed
        self._budget = budget
        self._stopwatch = Stopwatch(process.pid)
        self._slots = Slots()
        self._unread = 0.0  # seconds on the wall since the stopwatch was read
        self._sent = 0
        self.dead = False
        self.begin()
        # When nothing refers to the worker any more it may go.
        self._finalizer = weakref.finalize(self, _end_quietly, process)
        self._finalizer.atexit = False

    def begin(self) -> None:
        """Begin a test: what the worker keeps for an earlier one isn't needed any more."""
        self._begins = True
        self._kept: dict[int, weakref.KeyedRef[int, Any]] = {}
        self._gone: list[weakref.KeyedRef[int, Any]] = []
        self._placed: list[tuple[str, Any, int]] = []
        self._marks = 0

    def count_mark(self) -> int:
        """Return how many changed arguments a test has had before this one."""
        self._marks += 1
        return self._marks - 1

    def put(self, tensors: list[Tensor]) -> list[int]:
        """Put the next request's tensors where the worker sees them, and return their places.

        Raises:
            WorkerFailure: there is no room left.
        """
        try:
            places = [self._slots.take(tensor.nbytes) for tensor in tensors]
        except Full:
            self.close()
            raise WorkerFailure(Status.MEMORY, _FULL) from None
        self._placed = [
            (NAMES[tensor.dtype], tensor.shape, place)
            for tensor, place in zip(tensors, places, strict=True)
        ]
        self.memory.write_all(places, tensors)
        self._slots.release([p for p, t in zip(places, tensors, strict=True) if not t.nbytes])
        return places

    def exchange(self, do: Any) -> tuple[Response, Received]:
        """Send a request, whose tensors were put, and return the response with its tensors.

        Raises:
            WorkerFailure: it took too long, the worker ended, or what it said can't be read.
        """
        request, seconds = self._next(do), min(self._budget.call_seconds, self._budget.left)
        channel, limit = self._process.channel, Limit(seconds, self._stopwatch, self._unread)
        started = time.monotonic()
        try:
            try:
                send(channel, request, 0, limit.left, seconds)
                text, size = receive(channel, limit.left, seconds)
                response = read_response(text)
                tensors = self._tensors(response, size)
            finally:
                self._charge(time.monotonic() - started)  # while the worker is there to be measured
        except TimeoutError:
            self.close()
            raise WorkerFailure(Status.TIMEOUT, NO_END) from None
        except (Closed, ConnectionError):
            raise failure_of(self._end(_GRACE_SECONDS)) from None
        except (ProtocolError, MemoryError):
            self.close()
            raise WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}.") from None
        except BaseException:
            self.close()  # interrupted half-way: what comes next couldn't be told apart
            raise
        if self._printed is not None and response.printed:
            self._printed.append(clean_text(response.printed))
        return response, tensors

    def _next(self, do: Any) -> Request:
        """Return the request that is sent next.

        Raises:
            WorkerFailure: there is no time left for it.
        """
        if self._budget.left <= 0:
            self.close()
            raise WorkerFailure(Status.TIMEOUT, TIME_USED_UP)
        self._sent += 1
        free = [each.key for each in self._gone]
        del self._gone[: len(free)]  # the list stays: what is gone later is added to it
        for number in free:
            self._kept.pop(number, None)
        begins, self._begins = self._begins, False
        return Request(self._sent, begins, free, self._placed, do)

    def _tensors(self, response: Response, size: int) -> Received:
        """Return a response's tensors, and take note of what it releases.

        Raises:
            ProtocolError: it is no response to the last request, or too much came back.
        """
        if response.id != self._sent:
            raise ProtocolError("a response to another request")
        self._slots.release(response.released)
        self._budget.build(size)
        # A copy, since the worker can change what lies there at any time.
        payload = bytearray(self.memory.bytes[RESPONSES_AT : RESPONSES_AT + size])
        return Received(tensors_of(response.tensors, payload))

    def _charge(self, wall: float) -> None:
        self._unread += wall  # a little at a time isn't looked at: that takes longer than a call
        if self._unread >= _READ_AFTER:
            self._budget.spend(self._stopwatch.seconds(self._unread))
            self._unread = 0.0
            self._stopwatch.restart()

    def keep(self, number: int, thing: object) -> None:
        """Let the worker forget what it calls `number` when `thing` is gone."""
        self._kept[number] = weakref.KeyedRef(thing, self._gone.append, number)

    def kept(self, number: int) -> object:
        """Return what the worker calls `number`; None when it is gone."""
        reference = self._kept.get(number)
        return None if reference is None else reference()

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Take any error while a response is read as the worker's: it sent something unreadable.

        A response's size is the worker's choice, so the time for reading it is charged.
        """
        started = time.thread_time()
        try:
            yield
        except Exception:
            self.close()
            raise WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}.") from None
        finally:
            self._budget.spend(time.thread_time() - started)

    def close(self) -> None:
        """End the worker, unless that was done before."""
        if not self.dead:
            self._end()

    def _end(self, grace: float = 0.0) -> WorkerEnding:
        self.dead = True
        self._finalizer.detach()
        return self._process.end(grace)


class Full(Exception):  # noqa: N818  (an event)
    """There is no place left."""


class Slots:
    """The places of requests' tensors in the shared memory, for as long as the worker needs them.

    The trusted side chooses them. A worker says which it doesn't need any more, since the student's
    code may keep an argument, and torch does for a gradient. If that is a lie, what the worker
    still needs is overwritten, and nobody else is harmed.
    """

    def __init__(self) -> None:
        self._end = 0
        self._sizes: dict[int, int] = {}
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    def take(self, count: int) -> int:
        """Return a place for so many bytes.

        Raises:
            Full: there is none beside what the worker still needs.
        """
        size = max(_SMALLEST, 1 << (count - 1).bit_length())
        if self._free[size]:
            place = self._free[size].pop()
        else:
            place, self._end = self._end, self._end + size
            if self._end > RESPONSES_AT:
                self._end = place
                raise Full
        self._sizes[place] = size
        return place

    def release(self, places: list[int]) -> None:
        """Take back the places that the worker doesn't need any more.

        Raises:
            ProtocolError: it never had them.
        """
        for place in places:
            size = self._sizes.pop(place, 0)
            if not size:
                raise ProtocolError("a place that was not given")
            self._free[size].append(place)


def _end_quietly(process: WorkerProcess) -> None:
    with suppress(BoundaryError, OSError):
        process.end()
