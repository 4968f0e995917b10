"""From the exception that ended a test to a status and a sentence for the student."""

from __future__ import annotations

import difflib
import linecache
import re
import traceback
import unittest
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType

import pytest

from grader.compare import Mismatch
from grader.course import STUDENT_MODULE, SUBMISSION_FILE
from grader.guard import ForbiddenCall, Guard
from grader.result import Status

CANT_END = f"A test can't be skipped or ended from {SUBMISSION_FILE}."


@dataclass(frozen=True)
class Verdict:
    """How a test ended and what the student reads about it."""

    status: Status
    message: str = ""


class OwnFault(Exception):  # noqa: N818  (it is a verdict on its way up)
    """The grader itself can't do its work. Never a student's error."""


class CannotLoad(Exception):  # noqa: N818  (it is a verdict on its way up)
    """The student's file can't be used, so none of the problem's tests can run.

    Args:
        status: what the tests get.
        message: what the student reads.
    """

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status

    def afresh(self) -> CannotLoad:
        """Return the same to be raised once more: a traceback grows each time it is raised."""
        return self.with_traceback(None)


def judge(exception: BaseException | None, guard: Guard) -> Verdict:
    """Return the verdict on a test that ended with this exception, or with none.

    Args:
        exception: what the test raised.
        guard: what watched it; a forbidden call counts even if the student's code caught it.
    """
    if guard.called:
        return Verdict(Status.FORBIDDEN, _forbidden(guard.called))
    if exception is None:
        return Verdict(Status.PASSED)
    return _from_exception(exception, exception.__traceback__)


def judge_load(exception: BaseException, path: Path) -> CannotLoad:
    """Return what to tell of an exception that loading the student's file raised."""
    if isinstance(exception, NotImplementedError):
        return CannotLoad(Status.NOT_IMPLEMENTED, "problem.py stops before it is read to its end.")
    where = _place(exception.__traceback__)
    if _out_of_memory(exception):
        text = f"{path.name} runs out of memory while it is being imported."
        return CannotLoad(Status.MEMORY, text + where)
    if isinstance(exception, SyntaxError | ValueError) and not _runs(exception, path):
        text = f"{path.name} can't be read as Python: {_unreadable(exception)}"
        return CannotLoad(Status.ERROR, text)
    return CannotLoad(
        Status.ERROR, f"{path.name} stops while it is being imported.\n{_named(exception)}{where}"
    )


def _runs(exception: BaseException, path: Path) -> bool:
    """Return whether the exception came while the file ran, not while it was read."""
    frames = traceback.extract_tb(exception.__traceback__)
    return any(frame.filename == str(path) for frame in frames)


def _unreadable(exception: SyntaxError | ValueError) -> str:
    """Return why a file can't be read, and in which line if that is known."""
    if not isinstance(exception, SyntaxError):
        return str(exception)
    line = (exception.text or "").strip()
    where = f"\n  line {exception.lineno}" if exception.lineno else ""
    return f"{exception.msg}{where}" + (f": {line}" if where and line else "")


def _out_of_memory(exception: BaseException) -> bool:
    if isinstance(exception, RuntimeError):
        return "can't allocate memory" in str(exception)
    return isinstance(exception, MemoryError)


def _from_exception(exception: BaseException, tb: TracebackType | None) -> Verdict:
    match exception:
        case CannotLoad():
            return Verdict(exception.status, str(exception))
        case Mismatch():
            return Verdict(Status.FAILED, str(exception))
        case ForbiddenCall():
            return Verdict(Status.FORBIDDEN, _forbidden(str(exception)))
        case NotImplementedError():
            return Verdict(Status.NOT_IMPLEMENTED, _not_written(tb))
        case _ if _out_of_memory(exception):
            return Verdict(Status.MEMORY, "Your code ran out of memory." + _place(tb))
        case pytest.fail.Exception() if str(exception).startswith("Timeout"):
            return Verdict(Status.TIMEOUT, "Your code did not come to an end." + _place(tb))
        case (
            pytest.skip.Exception()
            | pytest.xfail.Exception()
            | pytest.exit.Exception()
            | unittest.SkipTest()
        ):
            return Verdict(Status.ERROR, CANT_END)
        case OwnFault():
            return Verdict(Status.INTERNAL, str(exception))
        case AttributeError(obj=ModuleType() as module, name=str(name)) if (
            module.__name__.startswith(STUDENT_MODULE)
        ):
            return Verdict(Status.MISSING, _missing(module, name))
        case AssertionError():
            text = re.split(r"\n?assert ", str(exception), maxsplit=1)[0]
            return Verdict(Status.FAILED, (text or _named(exception)) + _place(tb))
        case _:
            return Verdict(Status.ERROR, _named(exception) + _place(tb))


def _forbidden(name: str) -> str:
    return (
        f"Your code calls PyTorch's own {name}. In this problem you write that part yourself; "
        "the README lists what may not be called."
    )


def _missing(module: ModuleType, name: str) -> str:
    own = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
    near = difflib.get_close_matches(name, own, n=1, cutoff=0.6)
    hint = f" Did you mean to call `{near[0]}` so?" if near else ""
    return f"{SUBMISSION_FILE} has no `{name}`.{hint}"


def _not_written(tb: TracebackType | None) -> str:
    frame = _student_frame(tb)
    return f"not written yet: {frame[1]} (line {frame[0]})" if frame else "not written yet"


def _named(exception: BaseException) -> str:
    text = str(exception)
    name = type(exception).__name__
    return f"{name}: {text}" if text else name


def _place(tb: TracebackType | None) -> str:
    frame = _student_frame(tb)
    if frame is None:
        return ""
    number, function, line = frame
    inside = "" if function == "<module>" else f", in {function}"
    return f"\n  {SUBMISSION_FILE}, line {number}{inside}: {line}"


def _student_frame(tb: TracebackType | None) -> tuple[int, str, str] | None:
    """Return line number, function and text of the innermost frame in the student's file."""
    found = None
    for frame, number in traceback.walk_tb(tb):
        if frame.f_globals.get("__name__", "").startswith(STUDENT_MODULE):
            code = frame.f_code
            line = linecache.getline(code.co_filename, number).strip()
            found = number, code.co_qualname, line
    return found
