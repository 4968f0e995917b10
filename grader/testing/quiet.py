"""Keeps student code from printing to the terminal, and from waiting for what is typed there."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def quiet() -> Iterator[None]:
    """Let what is printed, and what Python warns of, go nowhere.

    Nobody would see a question or a debugger's prompt: what reads from the terminal finds it at its
    end, and `breakpoint()` does nothing.
    """
    stdin, breakpointhook = sys.stdin, sys.breakpointhook
    sys.stdin, sys.breakpointhook = io.StringIO(), lambda *_, **__: None
    nowhere = _Nowhere()
    try:
        with redirect_stdout(nowhere), redirect_stderr(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdin, sys.breakpointhook = stdin, breakpointhook


class _Nowhere(io.TextIOBase):
    """Where what is printed is lost."""

    def write(self, text: str) -> int:
        """Lose a text."""
        return len(text)
