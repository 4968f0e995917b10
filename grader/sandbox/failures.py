"""Describe for the student how a worker failed."""

from __future__ import annotations

import signal

from grader.code.time_limit import NO_END, NO_END_OF_FILE
from grader.course import SUBMISSION_FILE
from grader.errors import CannotLoad
from grader.result import Status
from grader.sandbox.spawn import WorkerEnding

BAD_OUTPUT = "The result of your code can't be read as tensors and plain values"

KILLED = (
    "The machine killed the process of the student's code (SIGKILL). Linux does this when memory "
    "runs out. The student's code is not the reason."
)


class WorkerFailure(CannotLoad):
    """The worker didn't respond, ended, or sent an invalid response.

    Args:
        status: `timeout`, `crash`, `memory` or `bad_output`; `internal` if another program killed
            the worker.
        message: the message for the student.
    """


def while_imported(failure: WorkerFailure) -> str:
    """Return the message about a worker that failed while it imported the student's file."""
    ended = str(failure) == NO_END
    return NO_END_OF_FILE if ended else f"{SUBMISSION_FILE} can't be imported. {failure}"


def failure_of(ending: WorkerEnding) -> WorkerFailure:
    """Return the failure of a worker that closed its connection."""
    code = ending.code
    if ending.killed:
        return WorkerFailure(Status.CRASH, "Your code closed the connection of its process.")
    if ending.out_of_time:
        return WorkerFailure(Status.TIMEOUT, "Your code used more CPU time than the limit.")
    if code == -getattr(signal, "SIGKILL", 9):
        return WorkerFailure(Status.INTERNAL, KILLED)
    if code >= 0:
        return WorkerFailure(Status.CRASH, f"Your code ended its process (exit status {code}).")
    names = {s.value: s.name for s in signal.Signals}
    name = names.get(-code, "unknown")
    # Torch aborts the process if it can't raise an exception for missing memory.
    hint = " Does it need very much memory?" if code == -signal.SIGABRT else ""
    return WorkerFailure(Status.CRASH, f"Your code's process died (signal {-code}, {name}).{hint}")
