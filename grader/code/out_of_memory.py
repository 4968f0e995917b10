"""Whether an exception says that memory ran out."""

from __future__ import annotations

import errno

_SIGNS = ("can't allocate memory", "not enough memory", "std::bad_alloc")
"""What torch says in a RuntimeError; it has no type of its own for it."""


def out_of_memory(exception: BaseException, text: str | None = None) -> bool:
    """Return whether an exception says that memory ran out.

    Args:
        exception: any.
        text: its text, where `str` can't be trusted to give that.
    """
    if isinstance(exception, OSError):
        return exception.errno == errno.ENOMEM
    if isinstance(exception, RuntimeError):
        said = str(exception) if text is None else text
        return any(sign in said for sign in _SIGNS)
    return isinstance(exception, MemoryError)
