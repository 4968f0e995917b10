"""What the student's code prints."""

from __future__ import annotations

import io

_MOST_PRINTED = 20_000


class Printed(io.TextIOBase):
    """What the student's code prints between two answers, cut."""

    def __init__(self) -> None:
        self._text = ""

    def write(self, text: str) -> int:
        """Keep a text."""
        self._text += str(text)[: _MOST_PRINTED - len(self._text)]
        return len(text)

    def take(self) -> str:
        """Return what was printed since the last time."""
        text, self._text = self._text, ""
        return text.encode("utf-8", "replace").decode()
