"""Quotes a student's file of tests: what is told of it stands in it, and is short.

Names, lines and reasons come from a process that has seen the catalogue. So they must not be able
to carry anything else out of it.
"""

from __future__ import annotations

import builtins
import re

from grader.run.own_tests import RefusedTests, Unusable
from grader.text import line

_LONGEST = 100
_LONGEST_NAME = 60
_WORD = re.compile(r"[^\W\d]\w*")
_ENDS = re.compile(r"\r\n|\r|\n")  # where Python begins a new line


class Quote:
    """Tells what stands in a file of tests.

    Args:
        tests: the file.
    """

    def __init__(self, tests: bytes) -> None:
        text = tests.decode("utf-8-sig", errors="replace")
        self._lines = _ENDS.split(text)
        self._words = {*_WORD.findall(text)}

    def name(self, name: str) -> str:
        """Return the name of a test, or "a test" if the file does not hold it."""
        return self._known(name, "a test")

    def line(self, number: int) -> str:
        """Return a line with its number, to stand after what happens there; "" if there is none."""
        text = line(self._lines[number - 1]) if 0 < number <= len(self._lines) else ""
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
        return f" in line {number}, {short}" if text else ""

    def reason(self, given: Unusable) -> Unusable:
        """Return why the file can't be run, without a word that is not its own or Python's."""
        if given.reason is RefusedTests.LOADING:
            kind = getattr(builtins, given.name, None)
            known = isinstance(kind, type) and issubclass(kind, BaseException)
            name = given.name if known else "an exception"
        else:
            name = self._known(given.name, "a name")
        number = given.line if given.line <= len(self._lines) else 0
        return Unusable(given.reason, name, self._known(given.other, "another name"), number)

    def _known(self, name: str, otherwise: str) -> str:
        is_known = name in self._words and len(name) <= _LONGEST_NAME
        return name if is_known else otherwise
