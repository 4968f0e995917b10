"""Exceptions that a worker describes, made again on this side as if raised by the student's file.

Each function's `file` is the name by which `linecache` knows the student's source.
"""

from __future__ import annotations

import builtins
import linecache
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from grader.isolation.protocol import MODULE, Header, Packed, ProtocolError
from grader.isolation.protocol.checks import clean_text, identifier, index, items, name_in, texts

_SOURCE_LINE = 300
_MOST_LINES = 1 << 31
_MOST_OPERANDS = 4
_NAME = re.compile(r"[^\W\d][\w.]{0,59}")
_FORM = re.compile(r"\([\d, ]{0,200}\) \w{1,30}")

_BUILTIN: Mapping[str, type[Exception]] = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type)
    and issubclass(value, Exception)
    and not issubclass(value, BaseExceptionGroup)
}


def read_exception(error: Header, file: str) -> Exception:
    """Return the exception that the worker describes, of a built-in type or of one below it.

    Its `student_place` tells line, function and source, if it came from the student's file.

    Raises:
        ProtocolError: it describes none.
    """
    base = _BUILTIN[name_in(error["kind"], _BUILTIN)]
    name, text = identifier(error["name"]), clean_text(texts([error["text"]])[0])
    line, where = index(error["line"], _MOST_LINES), texts([error["in"]])[0]
    if "syntax" in error:
        return _syntax_error(error["syntax"], file)
    cls: Any = base
    if name != base.__name__ or base.__str__ is not BaseException.__str__:
        members = {"__str__": lambda self: str(self.args[0]), "__module__": MODULE}
        cls = type(name, (base,), members)
    exception: Exception = cls.__new__(cls)
    exception.args = (text,)
    if line:
        place = (
            line,
            " ".join(clean_text(where, 200).split()),
            linecache.getline(file, line).strip(),
        )
        exception.student_place = place  # type: ignore[attr-defined]
    exception.operands = _operands(error.get("operands", []))  # type: ignore[attr-defined]
    return exception


def _operands(described: Packed) -> dict[str, str]:
    """Return the forms of the tensors in the student's line, by name."""
    pairs = [texts(items(pair, 2)) for pair in items(described)[:_MOST_OPERANDS]]
    if not all(_NAME.fullmatch(name) and _FORM.fullmatch(form) for name, form in pairs):
        raise ProtocolError("an operand isn't a name with a form")
    return dict(pairs)  # of two each


def _syntax_error(described: Packed, file: str) -> SyntaxError:
    message, line, text = items(described, 3)
    index(line, _MOST_LINES)
    message, text = (clean_text(t, _SOURCE_LINE) for t in texts([message, text]))
    return SyntaxError(message, (file, line, 1, text))


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
