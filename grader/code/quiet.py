"""Keeps student code from printing to the terminal, and from waiting for what is typed there."""

from __future__ import annotations

import io
import pdb
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from grader.code.printed import Printed

_KEPT = 100_000


@contextmanager
def quiet() -> Iterator[Printed]:
    """Keep what is printed off the terminal, and give it to whoever asks; warnings go nowhere.

    Nobody would see a question or a debugger's prompt: what reads from the terminal finds it at its
    end, and `breakpoint()` does nothing.
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
    """Stand in for a debugger where nobody could use one."""
