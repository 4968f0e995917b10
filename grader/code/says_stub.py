"""Whether an exception says that something has not been written yet, as a stub's does."""

from __future__ import annotations

import dis
from collections.abc import Iterator

_RAISES = dis.opmap["RAISE_VARARGS"]


def says_stub(exception: BaseException) -> bool:
    """Return whether this is a NotImplementedError that a `raise` raised, and for no other reason.

    torch raises the same type for what it can't do, on a device that isn't there for example, and
    for a module without a forward: that may stand in the file, but not in the class. And who could
    not open a file or a connection has attempted something.
    """
    if not isinstance(exception, NotImplementedError) or not _by_a_statement(exception):
        return False
    return not any(isinstance(before, OSError) for before in came_after(exception))


def came_after(exception: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that were being handled when this one was raised."""
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
