"""Capture the output of student code."""

from __future__ import annotations

import io


class Printed(io.TextIOBase):
    """A stream that keeps the beginning of its text.

    Args:
        most: how many characters to keep.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._text = ""

    def write(self, text: str) -> int:
        """Add a text, up to the limit."""
        self._text += str(text)[: max(0, self._most - len(self._text))]
        return len(text)

    def take(self) -> str:
        """Return the text since the last call, without characters that UTF-8 can't encode."""
        text, self._text = self._text, ""
        return text.encode("utf-8", "replace").decode()
