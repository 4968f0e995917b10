"""Show a student's file on a page, with links to the lines that tests mention."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from grader.text import plain

MOST_LINES = 1500
"""The maximum number of lines of a file on a page."""

_LINE_NUMBER = re.compile(r"(?:problem\.py:|(?:\(|^\s+)line )(\d+)", re.MULTILINE)
_DEFINITION = re.compile(r"^(?:async\s+)?(?:def|class)\s+(\w+)")


@dataclass(frozen=True)
class SourcePlace:
    """A line of a student's file, and the text of links to this line."""

    number: int
    label: str


@dataclass
class SourceView:
    """A student's file as lines on a page.

    Attributes:
        lines: the lines, numbered from 1 as in Python's messages.
        marked: the numbers of the lines that tests' messages mention.
    """

    lines: list[str]
    marked: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, source: bytes) -> SourceView:
        """Return the view of a file with any content."""
        text = source.decode("utf-8-sig", errors="replace")
        return cls(re.split("\r\n|\r|\n", text.rstrip("\r\n")))

    @property
    def shown(self) -> list[str]:
        """The first `MOST_LINES` lines."""
        return self.lines[:MOST_LINES]

    def place_of(self, message: str, *more: str) -> SourcePlace | None:
        """Return the place in the file that a test is about, or None if it is unknown.

        If the message contains a line number, return this line. Otherwise return the line of the
        first function or class that is named in the message's first line or in `more`.

        Args:
            message: the message of the test.
            more: other texts of the test.
        """
        named = _LINE_NUMBER.search(message)
        if named and int(named[1]) <= len(self.shown):
            self.marked.add(int(named[1]))
            return SourcePlace(int(named[1]), f"line {named[1]}")
        definitions = self._definitions()
        for text in (message.partition("\n")[0], *more):
            for word in re.findall(r"\w+", text):
                if word in definitions:
                    return SourcePlace(definitions[word], f"{word}, line {definitions[word]}")
        return None

    def as_html(self, id: str) -> Markup:
        """Return the lines as HTML elements with the ids `{id}-1`, `{id}-2` and so on."""
        # Escape all lines in one call, because a class has hundreds of thousands of lines.
        texts = escape(plain("\n".join(self.shown))).split("\n")
        start = escape(id)
        return Markup("").join(
            Markup(f'<span id="{start}-{number}"{self._mark(number)}>{text}\n</span>')
            for number, text in enumerate(texts, 1)
        )

    def _mark(self, number: int) -> str:
        return ' class="marked"' if number in self.marked else ""

    def _definitions(self) -> dict[str, int]:
        """Return the line number of each function and class, by name.

        The code may contain syntax errors.
        """
        lines: dict[str, int] = {}
        for number, line in enumerate(self.shown, 1):
            if definition := _DEFINITION.match(line):
                lines[definition[1]] = number
        return lines
