"""A student's file as a page shows it: its lines, and where in it a test has something to say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from grader.text import plain

MOST_LINES = 1500
"""Of a longer file a page shows its beginning."""

_LINE_TOLD = re.compile(r"(?:problem\.py:|(?:\(|^\s+)line )(\d+)", re.MULTILINE)
_DEFINITION = re.compile(r"^(?:async\s+)?(?:def|class)\s+(\w+)")


@dataclass(frozen=True)
class SourcePlace:
    """A line of a student's file, and what to call it."""

    number: int
    label: str


@dataclass
class SourceView:
    """A student's file.

    Attributes:
        lines: as Python counts them.
        marked: the numbers of those that a test's message is about.
    """

    lines: list[str]
    marked: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, source: bytes) -> SourceView:
        """Return the view of a file, whatever it holds."""
        text = source.decode("utf-8-sig", errors="replace")
        return cls(re.split("\r\n|\r|\n", text.rstrip("\r\n")))

    @property
    def shown(self) -> list[str]:
        """The lines that are shown."""
        return self.lines[:MOST_LINES]

    def place_of(self, message: str, *more: str) -> SourcePlace | None:
        """Return where in the file to look; None if nothing tells.

        That is the line that a message names, else the function or class that it begins with.

        Args:
            message: what a test said.
            more: other texts of the test, which may name what it is about.
        """
        told = _LINE_TOLD.search(message)
        if told and int(told[1]) <= len(self.shown):
            self.marked.add(int(told[1]))
            return SourcePlace(int(told[1]), f"line {told[1]}")
        definitions = self._definitions()
        for text in (message.partition("\n")[0], *more):
            for word in re.findall(r"\w+", text):
                if word in definitions:
                    return SourcePlace(definitions[word], f"{word}, line {definitions[word]}")
        return None

    def as_html(self, id: str) -> Markup:
        """Return the lines as elements that can be linked to, `id-1` and so on."""
        # All at once: a class has hundreds of thousands of lines.
        texts = escape(plain("\n".join(self.shown))).split("\n")
        start = escape(id)
        return Markup("").join(
            Markup(f'<span id="{start}-{number}"{self._mark(number)}>{text}\n</span>')
            for number, text in enumerate(texts, 1)
        )

    def _mark(self, number: int) -> str:
        return ' class="marked"' if number in self.marked else ""

    def _definitions(self) -> dict[str, int]:
        """Return where functions and classes begin, found by their looks: code may be broken."""
        found: dict[str, int] = {}
        for number, line in enumerate(self.shown, 1):
            if definition := _DEFINITION.match(line):
                found[definition[1]] = number
        return found
