"""Detect the NotImplementedError of a stub."""

from __future__ import annotations

import dis
from collections.abc import Iterator

_RAISES = dis.opmap["RAISE_VARARGS"]


def says_stub(exception: BaseException) -> bool:
    """Return whether this is a NotImplementedError of a `raise` statement like a stub's.

    torch raises the same type for unsupported actions, for example on a missing device, and for a
    module without a forward, which may be a function outside of the class. Code that failed to open
    a file or a connection before is no stub either.
    """
    if not isinstance(exception, NotImplementedError) or not _by_a_statement(exception):
        return False
    return not any(isinstance(before, OSError) for before in came_after(exception))


def came_after(exception: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that led to this one, the latest first."""
    seen = {id(exception)}
    before = exception.__cause__ or exception.__context__
    while before is not None and id(before) not in seen:
        seen.add(id(before))
        yield before
        before = before.__cause__ or before.__context__


def _by_a_statement(exception: BaseException) -> bool:
    trace = exception.__traceback__
    if trace is None:
        return True
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if package == "torch":
        return False
    return trace.tb_lasti < 0 or frame.f_code.co_code[trace.tb_lasti] == _RAISES
