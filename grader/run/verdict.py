"""Turn the exception that ended a test into a status and a sentence for the student."""

from __future__ import annotations

import difflib
import re
import unittest
from bdb import BdbQuit
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType, ModuleType, TracebackType

import numpy
import pytest
from torch import Tensor

from grader.code.forbidden import ForbiddenCall, Guard
from grader.code.loading import (
    STUDENT_MODULE,
    about_refusal,
    exception_text,
    is_stub_error,
    location,
    named,
    out_of_memory,
    student_frame,
)
from grader.code.tensors import Array, dtype_name
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
TOO_LARGE = "The result of your code takes too much memory."
"""The message about a value that is too large to be recorded or judged."""

_DEBUGGER_QUIT = "Quitting debugger"
"""pytest's message when the user quits its debugger."""


@dataclass(frozen=True)
class Verdict:
    """A test's status, its message for the student, and the evidence about a wrong answer."""

    status: Status
    message: str = ""
    shown: Shown | None = None


def judge(exception: BaseException | None, guard: Guard) -> Verdict:
    """Return the verdict on a test that has ended.

    Args:
        exception: the exception that the test raised, or None.
        guard: the guard that watched the test. A forbidden call counts even if the student's code
            caught the exception.
    """
    if guard.called:
        return Verdict(Status.FORBIDDEN, _forbidden(guard.called))
    if exception is None:
        return Verdict(Status.PASSED)
    return _from_exception(exception, exception.__traceback__)


def only_inspected(verdict: Verdict) -> Verdict:
    """Adapt the verdict of a test that has the marker `inspection_only`.

    Such a test judges how correct code runs. If the code fails or returns a wrong answer, the test
    can't judge it yet. The message is then replaced by one neutral line, because other tests
    describe the failure.
    """
    if verdict.status in _JUDGED:
        return verdict
    first, *more = verdict.message.splitlines()
    is_call = more and verdict.status is Status.FAILED
    message = not_yet(f"{first} isn't right." if is_call else first)
    return replace(verdict, message=message, shown=None)


def ends_tests(exception: BaseException) -> bool:
    """Return whether pytest would skip a test or end the whole run because of an exception."""
    ends = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)
    return isinstance(exception, (*ends, unittest.SkipTest))


def leaves_debugger(exception: BaseException) -> bool:
    """Return whether a debugger raised the exception to end the run."""
    if isinstance(exception, pytest.exit.Exception):
        return exception.msg == _DEBUGGER_QUIT
    return isinstance(exception, BdbQuit)


def _from_exception(exception: BaseException, tb: TracebackType | None) -> Verdict:
    match exception:
        case CannotLoad():
            return Verdict(exception.status, str(exception))
        case Mismatch(shown=shown):
            return Verdict(Status.FAILED, str(exception), shown)
        case ForbiddenCall():
            return Verdict(Status.FORBIDDEN, _forbidden(str(exception)))
        case NotImplementedError() if is_stub_error(exception):
            return Verdict(Status.NOT_IMPLEMENTED, _not_written(tb))
        case _ if out_of_memory(exception):
            return Verdict(Status.MEMORY, "Your code ran out of memory." + location(tb))
        case DoesNotEnd():
            return Verdict(Status.TIMEOUT, NO_END + location(tb))
        case _ if ends_tests(exception):
            return Verdict(Status.ERROR, _CANT_END)
        case BadRecord():
            return Verdict(Status.BAD_OUTPUT, TOO_LARGE)
        case AnswerRead():
            return Verdict(Status.INTERNAL, str(exception))
        case InternalError():
            return Verdict(Status.INTERNAL, str(exception))
        case AttributeError(obj=ModuleType() as module, name=str(name)) if (
            module.__name__.startswith(STUDENT_MODULE)
        ):
            return Verdict(Status.MISSING, _missing(module, name))
        case AssertionError():
            text = re.split(r"\n?assert ", exception_text(exception), maxsplit=1)[0]
            return Verdict(Status.FAILED, (text or named(exception)) + location(tb))
        case _:
            details = location(tb) + _explained(exception, tb) + about_refusal(exception)
            return Verdict(Status.ERROR, named(exception) + details)


def _explained(exception: BaseException, tb: TracebackType | None) -> str:
    """Return one line about the operands in the code that failed, and one line with the error hint.

    Either line is omitted if it would be empty.
    """
    frame = student_frame(tb)
    operands = {} if frame is None else operands_of(frame[3], frame[2])
    listed = ", ".join(f"{name} is {form}" for name, form in operands.items())
    hint = error_hint(exception_text(exception), operands)
    return (f"\n  {listed}" if listed else "") + (f"\n{hint}" if hint else "")


def _forbidden(name: str) -> str:
    return (
        f"Your code calls PyTorch's {name}. In this problem, you write this part yourself; "
        "the README lists what may not be called."
    )


def _missing(module: ModuleType, name: str) -> str:
    defined = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
    near = difflib.get_close_matches(name, defined, n=1, cutoff=0.6)
    hint = f" Is `{near[0]}` misspelled?" if near else ""
    return f"{SUBMISSION_FILE} has no `{name}`.{hint}"


def _not_written(tb: TracebackType | None) -> str:
    frame = student_frame(tb)
    return f"not written yet: {frame[1]} (line {frame[0]})" if frame else "not written yet"


# The operands in a line of student code

_MOST = 4
_LONGEST_NAME = 40
_LONGEST_FORM = 200
_LARGEST = 1e9

_VALUES = (Tensor, numpy.ndarray)
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")

Operands = dict[str, str]
"""Maps names to the forms of tensors, such as "(2, 3, 5) float64", or to numbers as text."""


def operands_of(frame: FrameType, line: str) -> Operands:
    """Describe at most four tensors in a line of code, and four numeric arguments of the function.

    The tensors are found by looking up names, and attributes such as `self.mask`, in the frame's
    variables. Nothing is called, so no student code runs.

    Args:
        frame: the frame in which the line ran.
        line: the text of the line, which may be part of a longer statement.
    """
    operands: Operands = {}
    for name in _names(line):
        value = _look_up(name, frame.f_locals)
        if isinstance(value, _VALUES) and issubclass(type(value), _VALUES):
            with suppress(Exception):  # a nested tensor has no shape
                text = form(value)
                if len(text) <= _LONGEST_FORM:
                    operands.setdefault(name, text)
        if len(operands) == _MOST:
            break
    return operands | _numbers(frame)


def _numbers(frame: FrameType) -> Operands:
    """Return the first arguments of the frame's function that are Python numbers, as text."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = ((name, frame.f_locals.get(name)) for name in names if len(name) <= _LONGEST_NAME)
    numbers = [
        (name, repr(value))
        for name, value in values
        if isinstance(value, int | float) and type(value) is not bool and _is_small(value)
    ]
    return dict(numbers[:_MOST])


def _is_small(number: float) -> bool:
    return type(number) in (int, float) and abs(number) < _LARGEST


def form(tensor: Tensor | Array) -> str:
    """Return a tensor's or an array's shape and dtype, such as "(2, 3, 5) float64"."""
    return f"{tuple(map(int, tensor.shape))} {dtype_name(tensor)}"


def _names(line: str) -> Iterator[str]:
    """Yield the names and attributes that a line of code reads, in order."""
    for chain in _NAME.findall(line.partition(" = ")[2] or line):
        parts = chain.split(".")
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            if len(name) <= _LONGEST_NAME:
                yield name


def _look_up(name: str, values: Mapping[str, object]) -> object:
    first, *rest = name.split(".")
    value = values.get(first)
    for part in rest:
        value = _member(value, part)
    return value


def _member(value: object, name: str) -> object:
    """Return a plain attribute, parameter, buffer or submodule; never run a property."""
    try:
        members = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    for kept in (members, members.get("_parameters"), members.get("_buffers")):
        if type(kept) is dict and name in kept:
            return kept[name]
    modules = members.get("_modules")
    return modules.get(name) if type(modules) is dict else None
