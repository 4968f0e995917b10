"""Prevent student code from printing to the terminal and from reading from the terminal."""

from __future__ import annotations

import io
import pdb
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

_KEPT = 100_000


@contextmanager
def quiet() -> Iterator[Printed]:
    """In a `with` block, capture printed text in the yielded object, and suppress warnings.

    Because the user would not see a prompt, the terminal input is empty and `breakpoint()` does
    nothing.
    """
    before = sys.stdin, sys.breakpointhook, pdb.set_trace
    sys.stdin = io.StringIO()
    sys.breakpointhook = pdb.set_trace = _no_debugger
    printed = Printed(_KEPT)
    try:
        with redirect_stdout(printed), redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield printed
    finally:
        sys.stdin, sys.breakpointhook, pdb.set_trace = before


def _no_debugger(*_: object, **__: object) -> None:
    pass


class Printed(io.TextIOBase):
    """A stream that stores the beginning of the text that is written to it.

    Args:
        most: the maximum number of characters to store.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._text = ""

    def write(self, text: str) -> int:
        """Store as much of a text as the limit allows, and return the length of the whole text."""
        self._text += str(text)[: max(0, self._most - len(self._text))]
        return len(text)

    def take(self) -> str:
        """Return the stored text, and clear it. Characters that UTF-8 can't encode are replaced."""
        text, self._text = self._text, ""
        return text.encode("utf-8", "replace").decode()
