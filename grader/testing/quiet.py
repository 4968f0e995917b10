"""Keeps what student code prints off the terminal."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def quiet() -> Iterator[None]:
    """Let what is printed, and what Python warns of, go nowhere."""
    nowhere = _Nowhere()
    with redirect_stdout(nowhere), redirect_stderr(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Nowhere(io.TextIOBase):
    """Where what is printed is lost."""

    def write(self, text: str) -> int:
        """Lose a text."""
        return len(text)
