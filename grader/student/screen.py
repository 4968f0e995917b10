"""Fit the output of `grader watch` into the terminal's window, and read pressed keys."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread


@dataclass(frozen=True)
class Screen:
    """The parts of the screen from top to bottom, wrapped to the window's width.

    Attributes:
        headline: the line with the problem and its points.
        text: the text about the first failed test.
        hint: the requested hint.
        table: the number of lines of the table of all problems. 0 omits the table.
        keys: the line that explains the keys.
    """

    headline: str
    text: str = ""
    hint: str = ""
    table: int = 0
    keys: str = ""

    def fitted(self, width: int, height: int) -> Screen:
        """Return a screen that fits into a window of this size.

        If necessary, omit the text above a hint, then the table, then the last lines of the hint or
        text.
        """
        if self._rows(width) < height:
            return self
        if self.hint and self.text:
            return replace(self, text="").fitted(width, height)
        if self.table:
            return replace(self, table=0).fitted(width, height)
        lines = (self.hint or self.text).splitlines()
        while lines and self._with_lines(lines)._rows(width) >= height:
            lines.pop()
        return self._with_lines(lines)

    def _with_lines(self, lines: list[str]) -> Screen:
        """Return a screen with only these lines of the hint, or of the text if there is no hint."""
        cut = "\n".join([*lines, "... for more: uv run pytest"])
        return replace(self, hint=cut) if self.hint else replace(self, text=cut)

    def _rows(self, width: int) -> int:
        """Return the number of rows that the screen needs, with a blank line between its parts."""
        parts = [part for part in (self.headline, self.text, self.hint, self.keys) if part]
        lines = [line for part in parts for line in part.splitlines()]
        rows = sum(max(1, -(-len(line) // width)) for line in lines)
        return rows + len(parts) - 1 + (self.table + 1 if self.table else 0)


@contextmanager
def keys_of_terminal(pressed: Callable[[str], None]) -> Iterator[None]:
    """Call `pressed` in another thread for each pressed key. Restore the terminal at the end."""
    if sys.platform == "win32":
        import msvcrt

        Thread(target=_read_keys, args=(msvcrt.getwch, pressed), daemon=True).start()
        yield
        return
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)  # read each key without waiting for Enter, and without echo
    read = partial(_read_key, file)
    Thread(target=_read_keys, args=(read, pressed), daemon=True).start()
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _read_key(file: int) -> str:
    return os.read(file, 1).decode(errors="replace")


def _read_keys(read: Callable[[], str], pressed: Callable[[str], None]) -> None:
    with suppress(OSError):
        while key := read():
            pressed(key)
    pressed("q")  # the terminal was closed
