"""Keeps student code from printing to the terminal, and from waiting for what is typed there."""

from __future__ import annotations

import io
import pdb
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

_KEPT = 100_000


class Printed(io.TextIOBase):
    """Takes what is printed in place of the terminal, and keeps the beginning of it."""

    def __init__(self) -> None:
        self._text = ""

    def write(self, text: str) -> int:
        """Keep a text, unless there is much already."""
        self._text += text[: max(0, _KEPT - len(self._text))]
        return len(text)

    def take(self) -> str:
        """Return what was printed since this was last asked."""
        text, self._text = self._text, ""
        return text


@contextmanager
def quiet() -> Iterator[Printed]:
    """Keep what is printed off the terminal, and give it to whoever asks; warnings go nowhere.

    Nobody would see a question or a debugger's prompt: what reads from the terminal finds it at its
    end, and `breakpoint()` does nothing.
    """
    before = sys.stdin, sys.breakpointhook, pdb.set_trace
    sys.stdin = io.StringIO()
    sys.breakpointhook = pdb.set_trace = _no_debugger
    printed = Printed()
    try:
        with redirect_stdout(printed), redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield printed
    finally:
        sys.stdin, sys.breakpointhook, pdb.set_trace = before


def _no_debugger(*_: object, **__: object) -> None:
    """Stand in for a debugger where nobody could use one."""
