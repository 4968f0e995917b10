"""Exceptions of the student's code, as plain data."""

from __future__ import annotations

import builtins
import errno
import linecache
import re
import traceback
from collections.abc import Callable
from typing import Any

from grader.isolation.protocol import FILE, MAX_NAME, MAX_TEXT, MODULE, Header
from grader.operands import Operands, operands_of
from grader.unwritten import came_after, says_unwritten

_META = re.compile(r"\bmeta\b|\bMeta\w+Type\b")
# As they are, where a metaclass has properties of these names.
_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__
_MRO: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_NO_LETTER = re.compile(r"\W", re.ASCII)
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "std::bad_alloc")


def attempt(function: Callable[[], Any]) -> tuple[Header, Any]:
    """Call a function of the student's; return how that ended, for the answer, and its value."""
    try:
        return {}, function()
    except BaseException as exception:
        return {"error": describe_exception(exception)}, None


def class_name(cls: type) -> str:
    """Return what a class is called, as an identifier, whatever its metaclass would say."""
    name = _NAME(cls)[:MAX_NAME]
    return name if name.isidentifier() else _NO_LETTER.sub("_", f"_{name}"[:MAX_NAME])


def describe_exception(exception: BaseException) -> Header:
    """Return an exception as plain data: its type, its text and its place in the student's file."""
    try:
        return _described(exception)
    except BaseException:  # one that fights back when it is looked at
        name = class_name(type(exception))
        return {"kind": "RuntimeError", "name": name, "text": "", "line": 0, "in": ""}


def _described(exception: BaseException) -> Header:
    text = _text(exception)
    kind = _builtin(type(exception))
    if kind == "NotImplementedError" and not says_unwritten(exception):
        kind = "RuntimeError"
        reasons = (f" (after {type(e).__name__}: {_text(e)})" for e in came_after(exception))
        text = (text + "".join(reasons)).lstrip()
    if _is_of_memory(exception) or (
        kind == "RuntimeError" and any(sign in text for sign in _OUT_OF_MEMORY)
    ):
        kind = "MemoryError"
    line, where, operands = _place(exception)
    name = class_name(type(exception))
    return {"kind": kind, "name": name, "text": text[:MAX_TEXT], "line": line, "in": where} | {
        "operands": [[name, form] for name, form in operands.items()]
    }


def _is_of_memory(exception: BaseException) -> bool:
    return isinstance(exception, OSError) and exception.errno == errno.ENOMEM


def speaks_of_meta(error: Header | None) -> bool:
    """Return whether torch itself refused a gradient that is on the meta device."""
    return error is not None and not error["line"] and bool(_META.search(error["text"]))


def _text(exception: BaseException) -> str:
    try:
        return str(exception).encode("utf-8", "replace").decode()
    except BaseException:
        return ""


def describe_loading(exception: BaseException, source: bytes) -> Header:
    """Return an exception that loading a file raised; with more if the file can't even be read."""
    return describe_exception(exception) | _unreadable(exception, source)


def _unreadable(exception: BaseException, source: bytes) -> Header:
    if _place(exception)[0]:
        return {}  # it stopped while it ran
    if isinstance(exception, UnicodeDecodeError):
        line = source.count(b"\n", 0, exception.start) + 1
        return {"syntax": [str(exception)[:MAX_TEXT], line, ""]}
    if isinstance(exception, SyntaxError):
        text = (exception.text or "")[:MAX_TEXT]
        return {"syntax": [str(exception.msg)[:MAX_TEXT], exception.lineno or 0, text]}
    return {}


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
