"""CSV files of the book: reading, and messages about single lines.

Cells are separated by commas, semicolons or tabs. Empty lines and lines that begin with `#` are
skipped.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, TypeVar

from grader.errors import UsageError
from grader.files import column_names, decoded_csv, read_rows
from grader.result import ProblemResult, TestResult
from grader.text import MOST_POINTS, from_cell, parse_points, quoted

EVERYBODY = "*"

_LONGEST = 40
"""So many characters of a cell that is no number are shown."""


@dataclass(frozen=True)
class BookLine:
    """One line of a file about marks.

    Attributes:
        line: its number.
        submission: the name or identity of the student.
        problem: an id, or its number.
        test: a test of the problem; empty for the whole problem.
        text: the line as written.
    """

    file: ClassVar[str]

    line: int
    submission: str
    problem: str
    test: str = field(default="", kw_only=True)
    text: str = field(default="", kw_only=True, compare=False)

    @property
    def for_everybody(self) -> bool:
        """Whether it applies to the whole class."""
        return self.submission == EVERYBODY

    def tests(self, problem: ProblemResult) -> list[TestResult]:
        """Return the tests of a problem that the line applies to."""
        return [test for test in problem.tests if self.test in ("", test.id, test.name)]

    def concerns(self, problem: ProblemResult) -> bool:
        """Return whether the line applies to a problem."""
        return problem.id == self.problem or problem.id.startswith(f"{self.problem.zfill(2)}-")

    def not_followed(self, why: str) -> str:
        """Return the message for a line that has no effect."""
        return f"{_place(self.file, self.line)}, does not count: {why}."

    def corrected(self, why: str, wrong: str = "", right: Sequence[str] = ()) -> str:
        """Return the message for a line that has no effect, with a line that would have one.

        Args:
            why: the reason, without a full stop.
            wrong: the unknown text in the line.
            right: candidates to replace it.
        """
        lines = [self.text.replace(wrong, each, 1) for each in right] or [f"# {self.text}"]
        way = "Write instead" if right else "Change the line, or skip it"
        return "\n".join([f"{self.not_followed(why)} {way}:", *lines])


def number_of(problem: str) -> str:
    """Return the number of a problem from its id or number."""
    return problem.partition("-")[0].zfill(2)


LineOfFile = TypeVar("LineOfFile", bound=BookLine)


def read_lines(
    path: Path, needed: Sequence[str], understood: Callable[[int, dict[str, str]], LineOfFile]
) -> list[LineOfFile]:
    """Return the lines of a file; none if the file does not exist.

    Args:
        path: the file.
        needed: columns that must exist and must not be empty.
        understood: converts a line number and its cells by column. A ValueError rejects the line.

    Raises:
        UsageError: the file can't be read, or some lines are invalid.
    """
    if not path.exists():
        return []
    rows = read_rows(path)
    columns = column_names(rows)
    if missing := [name for name in needed if name not in columns]:
        raise UsageError(f"{path} has no column {', '.join(missing)} in its first line.")
    texts = [*io.StringIO(decoded_csv(path.read_bytes())[0], newline="")]
    found, wrong = [], []
    for line, cells in rows[1:]:
        try:
            said = understood(line, _by_column(columns, cells, needed))
            found.append(replace(said, text=texts[line - 1].strip()))
        except ValueError as error:
            wrong.append(f"{_place(path.name, line)}: {error}.")
    if wrong:
        raise UsageError("\n".join(wrong))
    return found


def _place(file: str, line: int) -> str:
    return f"{file}, line {line}"


def read_points(name: str, text: str, also: str = "") -> float:
    """Return the number of points in a cell.

    Args:
        name: the column.
        text: the cell.
        also: another valid content of the cell.

    Raises:
        ValueError: the cell contains no valid number.
    """
    found = parse_points(text)
    if found is None:
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        more = f", or {also!r}" if also else ""
        raise ValueError(
            f"{name!r} is {quoted(short)}. Write a number from 0 to {MOST_POINTS:,}, such as 2.5"
            f"{more}"
        )
    return found


def _by_column(columns: list[str], cells: list[str], needed: Sequence[str]) -> dict[str, str]:
    if len(cells) != len(columns):
        raise ValueError(f"it has {len(cells)} columns, not {len(columns)}")
    row = dict(zip(columns, (from_cell(cell.strip()) for cell in cells), strict=True))
    for name in needed:
        if not row[name]:
            raise ValueError(f"its column {quoted(name)} is empty")
    return row
