"""Takes what student code prints."""

from __future__ import annotations

import io


class Printed(io.TextIOBase):
    """Takes what is printed, and keeps the beginning of it.

    Args:
        most: how many characters are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._text = ""

    def write(self, text: str) -> int:
        """Keep a text, unless there is much already."""
        self._text += str(text)[: max(0, self._most - len(self._text))]
        return len(text)

    def take(self) -> str:
        """Return what was printed since this was last asked, as a text that can be written."""
        text, self._text = self._text, ""
        return text.encode("utf-8", "replace").decode()
