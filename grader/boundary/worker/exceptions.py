"""Exceptions of the student's code, as plain data."""

from __future__ import annotations

import builtins
import linecache
import re
import traceback
from collections.abc import Callable

from grader.boundary.protocol.codec import class_name
from grader.boundary.protocol.wire import FILE, MAX_TEXT, MODULE, ErrorForm
from grader.code.operands import Operands, operands_of
from grader.code.out_of_memory import out_of_memory
from grader.code.says_stub import came_after, says_stub

_META = re.compile(r"\bmeta\b|\bMeta\w+Type\b")
# As it is, where a metaclass has a property of this name.
_MRO: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__


def describe_exception(exception: BaseException) -> ErrorForm:
    """Return an exception as plain data: its type, its text and its place in the student's file."""
    try:
        return _described(exception)
    except BaseException:  # one that fights back when it is looked at
        return ErrorForm("RuntimeError", class_name(type(exception)))


def _described(exception: BaseException) -> ErrorForm:
    text = _text(exception)
    kind = _builtin(type(exception))
    if kind == "NotImplementedError" and not says_stub(exception):
        kind = "RuntimeError"
        reasons = (f" (after {type(e).__name__}: {_text(e)})" for e in came_after(exception))
        text = (text + "".join(reasons)).lstrip()
    if out_of_memory(exception, text):
        kind = "MemoryError"
    line, where, operands = _place(exception)
    name, pairs = class_name(type(exception)), [*operands.items()]
    return ErrorForm(kind, name, text[:MAX_TEXT], line, where, pairs)


def speaks_of_meta(error: ErrorForm) -> bool:
    """Return whether torch itself refused a gradient that is on the meta device."""
    return not error.line and bool(_META.search(error.text))


def _text(exception: BaseException) -> str:
    try:
        return str(exception).encode("utf-8", "replace").decode()
    except BaseException:
        return ""


def describe_loading(exception: BaseException, source: bytes) -> ErrorForm:
    """Return an exception that loading a file raised; with more if the file can't even be read."""
    described = describe_exception(exception)
    if not described.line:  # else it stopped while it ran
        described.syntax = _unreadable(exception, source)
    return described


def _unreadable(exception: BaseException, source: bytes) -> tuple[str, int, str] | None:
    if isinstance(exception, UnicodeDecodeError):
        line = source.count(b"\n", 0, exception.start) + 1
        return str(exception)[:MAX_TEXT], line, ""
    if isinstance(exception, SyntaxError):
        text = (exception.text or "")[:MAX_TEXT]
        return str(exception.msg)[:MAX_TEXT], exception.lineno or 0, text
    return None


def _builtin(cls: type[BaseException]) -> str:
    for base in _MRO(cls):
        if issubclass(base, BaseExceptionGroup):
            continue  # what is in it isn't told
        if issubclass(base, Exception) and getattr(builtins, class_name(base), None) is base:
            return class_name(base)
    return "RuntimeError"  # SystemExit and the like must not end anything on the other side


def _place(exception: BaseException) -> tuple[int, str, Operands]:
    """Return where the innermost frame in the student's file stands; line 0 if there is none.

    That is a line, a function, and the tensors that the line names.
    """
    steps = traceback.walk_tb(exception.__traceback__)
    own = [step for step in steps if step[0].f_globals.get("__name__") == MODULE]
    if not own:
        return 0, "", {}
    frame, number = own[-1]
    operands = operands_of(frame, linecache.getline(FILE, number))
    return max(0, number or 0), frame.f_code.co_qualname, operands
