"""Fits what `grader watch` shows into a terminal's window, where there is little room."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Screen:
    """What there is to show, from top to bottom, each part wrapped to the window's width.

    Attributes:
        headline: the problem and its points.
        text: what to look at first.
        hint: a hint that was asked for.
        table: how many lines the table of all problems has; 0 leaves it out.
        keys: which keys there are.
    """

    headline: str
    text: str = ""
    hint: str = ""
    table: int = 0
    keys: str = ""

    def fitted(self, width: int, height: int) -> Screen:
        """Return what fits: the text gives way to a hint, the table to both, then their end."""
        if self._rows(width) < height:
            return self
        if self.hint and self.text:
            return replace(self, text="").fitted(width, height)
        if self.table:
            return replace(self, table=0).fitted(width, height)
        lines = (self.hint or self.text).splitlines()
        while lines and self._with(lines)._rows(width) >= height:
            lines.pop()
        return self._with(lines)

    def _with(self, lines: list[str]) -> Screen:
        """Return the screen with only these lines of the hint, or else of the text."""
        cut = "\n".join([*lines, "... for more: uv run pytest"])
        return replace(self, hint=cut) if self.hint else replace(self, text=cut)

    def _rows(self, width: int) -> int:
        """Return how many lines of the window all of it takes, with a blank line between parts."""
        parts = [part for part in (self.headline, self.text, self.hint, self.keys) if part]
        lines = [line for part in parts for line in part.splitlines()]
        rows = sum(max(1, -(-len(line) // width)) for line in lines)
        return rows + len(parts) - 1 + (self.table + 1 if self.table else 0)
