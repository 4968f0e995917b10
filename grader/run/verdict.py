"""Turn the exception that ended a test into a status and a sentence for the student."""

from __future__ import annotations

import difflib
import re
import unittest
from bdb import BdbQuit
from dataclasses import dataclass, replace
from types import ModuleType, TracebackType

import pytest

from grader.code.forbidden import ForbiddenCall, Guard
from grader.code.loading import (
    STUDENT_MODULE,
    alone,
    named,
    out_of_memory,
    place,
    says_stub,
    student_frame,
    text_of,
)
from grader.code.operands import Operands, operands_of
from grader.code.time_limit import NO_END, DoesNotEnd
from grader.course import SUBMISSION_FILE
from grader.diagnose.error_hint import error_hint
from grader.diagnose.evidence import Shown
from grader.errors import CannotLoad, InternalError, Mismatch
from grader.result import Status, not_yet
from grader.run.encoding import BadRecord
from grader.run.unknown import AnswerRead

_JUDGED = (Status.PASSED, Status.FORBIDDEN, Status.NOT_IMPLEMENTED, Status.INTERNAL)

_CANT_END = f"A test can't be skipped or ended from {SUBMISSION_FILE}."
_TOO_LARGE = "What came back from your code takes more memory than there is to look at it."

_LEFT = "Quitting debugger"
"""pytest's message when the user quits its debugger."""


@dataclass(frozen=True)
class Verdict:
    """A test's status, its message for the student, and the evidence in a wrong answer."""

    status: Status
    message: str = ""
    shown: Shown | None = None


def judge(exception: BaseException | None, guard: Guard) -> Verdict:
    """Return the verdict on a test that ended with this exception, or with none.

    Args:
        exception: the exception of the test.
        guard: the guard that watched it; a forbidden call counts even if the code caught it.
    """
    if guard.called:
        return Verdict(Status.FORBIDDEN, _forbidden(guard.called))
    if exception is None:
        return Verdict(Status.PASSED)
    return _from_exception(exception, exception.__traceback__)


def only_inspected(verdict: Verdict) -> Verdict:
    """Return the verdict on a rule that is judged by watching correct code run.

    If the code fails or its answer is wrong, the rule can't be judged yet. The message is one
    neutral line, as other tests describe the failure.
    """
    if verdict.status in _JUDGED:
        return verdict
    first, *more = verdict.message.splitlines()
    is_call = more and verdict.status is Status.FAILED
    message = not_yet(f"{first} isn't right." if is_call else first)
    return replace(verdict, message=message, shown=None)


def ends_tests(exception: BaseException) -> bool:
    """Return whether pytest would skip a test or end the whole run for an exception."""
    ends = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)
    return isinstance(exception, (*ends, unittest.SkipTest))


def leaves_debugger(exception: BaseException) -> bool:
    """Return whether a debugger raised the exception to end the run."""
    if isinstance(exception, pytest.exit.Exception):
        return exception.msg == _LEFT
    return isinstance(exception, BdbQuit)


def _from_exception(exception: BaseException, tb: TracebackType | None) -> Verdict:
    match exception:
        case CannotLoad():
            return Verdict(exception.status, str(exception))
        case Mismatch(shown=shown):
            return Verdict(Status.FAILED, str(exception), shown)
        case ForbiddenCall():
            return Verdict(Status.FORBIDDEN, _forbidden(str(exception)))
        case NotImplementedError() if says_stub(exception):
            return Verdict(Status.NOT_IMPLEMENTED, _not_written(tb))
        case _ if out_of_memory(exception):
            return Verdict(Status.MEMORY, "Your code ran out of memory." + place(tb))
        case DoesNotEnd():
            return Verdict(Status.TIMEOUT, NO_END + place(tb))
        case _ if ends_tests(exception):
            return Verdict(Status.ERROR, _CANT_END)
        case BadRecord():
            return Verdict(Status.BAD_OUTPUT, _TOO_LARGE)
        case AnswerRead():
            return Verdict(Status.INTERNAL, str(exception))
        case InternalError():
            return Verdict(Status.INTERNAL, str(exception))
        case AttributeError(obj=ModuleType() as module, name=str(name)) if (
            module.__name__.startswith(STUDENT_MODULE)
        ):
            return Verdict(Status.MISSING, _missing(module, name))
        case AssertionError():
            text = re.split(r"\n?assert ", text_of(exception), maxsplit=1)[0]
            return Verdict(Status.FAILED, (text or named(exception)) + place(tb))
        case _:
            told = place(tb) + _explained(exception, tb) + alone(exception)
            return Verdict(Status.ERROR, named(exception) + told)


def _explained(exception: BaseException, tb: TracebackType | None) -> str:
    """Return the forms of the tensors in the student's line, and the error hint."""
    forms = _operands(tb)
    told = ", ".join(f"{name} is {form}" for name, form in forms.items())
    sentence = error_hint(text_of(exception), forms)
    return (f"\n  {told}" if told else "") + (f"\n{sentence}" if sentence else "")


def _operands(tb: TracebackType | None) -> Operands:
    frame = student_frame(tb)
    return {} if frame is None else operands_of(frame[3], frame[2])


def _forbidden(name: str) -> str:
    return (
        f"Your code calls PyTorch's {name}. In this problem you write that part yourself; "
        "the README lists what may not be called."
    )


def _missing(module: ModuleType, name: str) -> str:
    own = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
    near = difflib.get_close_matches(name, own, n=1, cutoff=0.6)
    hint = f" Did you mean to call `{near[0]}` so?" if near else ""
    return f"{SUBMISSION_FILE} has no `{name}`.{hint}"


def _not_written(tb: TracebackType | None) -> str:
    frame = student_frame(tb)
    return f"not written yet: {frame[1]} (line {frame[0]})" if frame else "not written yet"
