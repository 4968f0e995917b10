"""Exceptions that a worker describes, made again on this side as if raised by the student's file.

Each function's `file` is the name by which `linecache` knows the student's source.
"""

from __future__ import annotations

import builtins
import linecache
from collections.abc import Mapping
from typing import Any, NoReturn

from grader.boundary.failures import BAD_OUTPUT, WorkerFailure
from grader.boundary.protocol.wire import (
    MODULE,
    ErrorForm,
    Response,
    clean_text,
    identifier,
    named,
)
from grader.code.forbidden import ForbiddenCall
from grader.result import Status

_SOURCE_LINE = 300

_BUILTIN: Mapping[str, type[Exception]] = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type)
    and issubclass(value, Exception)
    and not issubclass(value, BaseExceptionGroup)
}


def ending_of(response: Response, forbidden: tuple[str, ...], file: str) -> Exception | None:
    """Return what a request ended with, by the worker's word; None if it ended well.

    That is a ForbiddenCall, a WorkerFailure for a value that can't be sent, or what the student's
    code raised.

    Args:
        response: the worker's.
        forbidden: the functions that may not be called.
        file: the student's, as tracebacks name it.

    Raises:
        ProtocolError: that isn't to be read from it.
    """
    called = None if response.called is None else named(response.called, forbidden)
    exception = None if response.error is None else read_exception(response.error, file)
    if called is not None:
        return ForbiddenCall(called)
    if response.unsendable is not None:
        reason = clean_text(response.unsendable, 200)
        return WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}: {reason}.")
    return exception


def read_exception(error: ErrorForm, file: str) -> Exception:
    """Return the exception that the worker describes, of a built-in type or of one below it.

    Its `student_place` tells line, function and source, if it came from the student's file.

    Raises:
        ProtocolError: it describes none.
    """
    base = _BUILTIN[named(error.kind, _BUILTIN)]
    name, text, line = identifier(error.name), clean_text(error.text), error.line
    if error.syntax is not None:
        message, line, source = error.syntax
        message, source = clean_text(message, _SOURCE_LINE), clean_text(source, _SOURCE_LINE)
        return SyntaxError(message, (file, line, 1, source))
    cls: Any = base
    if name != base.__name__ or base.__str__ is not BaseException.__str__:
        members = {"__str__": lambda self: str(self.args[0]), "__module__": MODULE}
        cls = type(name, (base,), members)
    exception: Exception = cls.__new__(cls)
    exception.args = (text,)
    if line:
        where = " ".join(clean_text(error.where, 200).split())
        place = line, where, linecache.getline(file, line).strip()
        exception.student_place = place  # type: ignore[attr-defined]
    exception.operands = dict(error.operands)  # type: ignore[attr-defined]
    return exception


def raise_as_students(exception: Exception, file: str) -> NoReturn:
    """Raise `exception` from a frame that looks like the student's, so it is judged as such."""
    line, where, _ = getattr(exception, "student_place", (0, "", ""))
    if not line:
        raise exception
    code = compile("raise exception", file, "exec")
    code = code.replace(co_firstlineno=line, co_name=where, co_qualname=where)
    exec(code, {"__name__": MODULE, "exception": exception})
    raise AssertionError("unreachable")


def readable_lines(source: bytes) -> list[str]:
    """Return the lines of the student's source as they may be shown."""
    text = source.decode("utf-8", errors="replace")
    return [clean_text(line, _SOURCE_LINE) + "\n" for line in text.splitlines()]
