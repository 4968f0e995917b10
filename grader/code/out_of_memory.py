"""Detect exceptions that were raised because memory ran out."""

from __future__ import annotations

import errno

_SIGNS = ("can't allocate memory", "not enough memory", "std::bad_alloc")
"""Parts of the texts of torch's RuntimeErrors, which have no separate type."""


def out_of_memory(exception: BaseException, text: str | None = None) -> bool:
    """Return whether an exception was raised because memory ran out.

    Args:
        exception: any exception.
        text: its text, if its `str` can't be trusted.
    """
    if isinstance(exception, OSError):
        return exception.errno == errno.ENOMEM
    if isinstance(exception, RuntimeError):
        said = str(exception) if text is None else text
        return any(sign in said for sign in _SIGNS)
    return isinstance(exception, MemoryError)
