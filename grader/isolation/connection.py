"""The connection to one worker: requests, answers, deadlines, and what to make of a silence."""

from __future__ import annotations

import contextlib
import functools
import signal
import time
import weakref
from typing import Any

import torch
from torch import Tensor

from grader.errors import CannotLoad
from grader.isolation.protocol import Closed, Header, ProtocolError
from grader.isolation.protocol.checks import clean_text
from grader.isolation.protocol.frames import receive, send
from grader.isolation.protocol.tensors import same
from grader.isolation.spawn import BoundaryError, Process
from grader.result import Status

BAD_OUTPUT = "What came back from your code can't be read as tensors and plain values"


class WorkerFailure(CannotLoad):
    """The student's process didn't answer, ended, or answered nonsense.

    Args:
        status: `timeout`, `crash`, `memory` or `bad_output`.
        message: what the student reads.
    """


class Budget:
    """How long a submission's calls may keep the tests waiting.

    Args:
        call_seconds: seconds that one call may take.
        seconds: seconds that all calls may take.
    """

    def __init__(self, call_seconds: float, seconds: float) -> None:
        self.call_seconds = call_seconds
        self.left = seconds

    def spend(self, seconds: float) -> None:
        """Take note of waiting that happened."""
        self.left = max(0.0, self.left - seconds)


class Connection:
    """The connection to one live worker.

    Args:
        process: the worker.
        budget: how long it may take.
        printed: what the student's code prints is added here, if the worker was told to keep it.

    Attributes:
        dead: whether it ended.
        free: numbers of what the worker may forget; sent with the next request.
    """

    def __init__(self, process: Process, budget: Budget, printed: list[str] | None = None) -> None:
        self._process = process
        self._printed = printed
        self._budget = budget
        self._count = 0
        self.dead = False
        self.free: list[int] = []
        self._random: Tensor | None = None
        self._kept: dict[int, weakref.ref[Any]] = {}
        # When nothing refers to the worker any more it may go.
        self._finalizer = weakref.finalize(self, _end_quietly, process)
        self._finalizer.atexit = False

    def exchange(self, header: Header, tensors: list[Tensor]) -> tuple[Header, list[Tensor]]:
        """Send a request and return the answer.

        Raises:
            WorkerFailure: there is none.
        """
        if self._budget.left <= 0:
            self.close()
            raise WorkerFailure(Status.TIMEOUT, "Not run: the time for this submission is used up.")
        started = time.monotonic()
        try:
            answer, found = self._exchange(header, tensors, started + self._seconds())
            text = answer.get("printed")
            if self._printed is not None and isinstance(text, str) and text:
                self._printed.append(clean_text(text))
            return answer, found
        except TimeoutError:
            self.close()
            raise WorkerFailure(Status.TIMEOUT, "Your code did not come to an end.") from None
        except (Closed, ConnectionError):
            raise _ended(self.close()) from None
        except ProtocolError:
            self.close()
            raise WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}.") from None
        except BaseException:
            self.close()  # interrupted half-way: what comes next couldn't be told apart
            raise
        finally:
            self._budget.spend(time.monotonic() - started)

    def random(self, tensors: list[Tensor]) -> int | None:
        """Add the global random state to a request's tensors and return its place there.

        Returns None if the worker was told that state already; it is some kilobytes.
        """
        state = torch.default_generator.get_state()
        if self._random is not None and same(state, self._random):
            return None
        self._random = state
        tensors.append(state)
        return len(tensors) - 1

    def keep(self, number: int, thing: object) -> None:
        """Let the worker forget what it calls `number` when `thing` is gone."""
        self._kept[number] = weakref.ref(
            thing, functools.partial(_forget, self._kept, self.free, number)
        )

    def _seconds(self) -> float:
        return min(self._budget.call_seconds, self._budget.left)

    def _exchange(
        self, header: Header, tensors: list[Tensor], deadline: float
    ) -> tuple[Header, list[Tensor]]:
        self._count += 1
        free = self.free[:]
        del self.free[: len(free)]
        header["id"], header["free"] = self._count, free
        channel = self._process.channel
        channel.settimeout(self._seconds())
        send(channel, header, tensors)
        answer, found = receive(channel, deadline)
        if answer.get("id") != self._count:
            raise ProtocolError("an answer to another request")
        return answer, found

    def checked(self) -> _Checked:
        """Take any error while an answer is read as the worker's: it sent something unreadable."""
        return _Checked(self)

    def close(self) -> int:
        """End the worker and return its exit code; 0 if that was done before."""
        if self.dead:
            return 0
        self.dead = True
        self._finalizer.detach()
        return self._process.end()


class _Checked:
    """What `Connection.checked` gives; contextlib takes longer, and each answer needs it twice."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if isinstance(error, Exception):
            self._connection.close()
            raise WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}.") from None


def _forget(kept: dict[int, Any], free: list[int], number: int, gone: object) -> None:
    kept.pop(number, None)
    free.append(number)


def _end_quietly(process: Process) -> None:
    with contextlib.suppress(BoundaryError, OSError):
        process.end()


def _ended(code: int) -> WorkerFailure:
    if code == -getattr(signal, "SIGXCPU", 24):
        return WorkerFailure(Status.TIMEOUT, "Your code used more CPU time than it may.")
    if code >= 0:
        return WorkerFailure(Status.CRASH, f"Your code ended its process (exit status {code}).")
    names = {s.value: s.name for s in signal.Signals}
    name = names.get(-code, "unknown")
    # Where torch can't raise an exception for memory that it doesn't get, it ends the process.
    hint = " Does it need very much memory?" if code == -signal.SIGABRT else ""
    return WorkerFailure(Status.CRASH, f"Your code's process died (signal {-code}, {name}).{hint}")
