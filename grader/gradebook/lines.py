"""Lines of the book's CSV files: reading, and messages about single lines.

Cells are separated by commas, semicolons or tabs. Empty lines and lines that begin with `#` are
skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from grader.csv_table import csv_line, read_table
from grader.errors import UsageError
from grader.result import ProblemResult
from grader.text import MOST_POINTS, from_cell, parse_points, quoted

EVERYBODY = "*"

_LONGEST = 40
"""So many characters of a cell that is no number are shown."""


@dataclass(frozen=True)
class BookLine:
    """One line of a file about marks.

    Attributes:
        number: its number.
        cells: by column.
        separator: between cells.
    """

    file: ClassVar[str]
    needed: ClassVar[Sequence[str]]
    """The columns that must exist and must not be empty."""

    number: int
    cells: Mapping[str, str]
    separator: str

    @property
    def submission(self) -> str:
        """The name or identity of the student, or `*`."""
        return self.cells["submission"]

    @property
    def problem(self) -> str:
        """An id, or its number."""
        return self.cells["problem"]

    @property
    def test(self) -> str:
        """A test of the problem; empty for the whole problem."""
        return self.cells.get("test", "")

    @property
    def for_everybody(self) -> bool:
        """Whether it applies to the whole class."""
        return self.submission == EVERYBODY

    @property
    def value(self) -> object:
        """The content. Two lines about one part contradict each other if it differs."""
        raise NotImplementedError

    def parts(self, problem: ProblemResult) -> frozenset[str]:
        """Return the parts of a problem that the line is about."""
        raise NotImplementedError

    def check(self) -> None:
        """Check the cells.

        Raises:
            ValueError: one is invalid.
        """
        raise NotImplementedError

    def concerns(self, problem: str) -> bool:
        """Return whether the line applies to the problem with this id."""
        return problem == self.problem or number_of(problem) == self.problem.zfill(2)

    def without_effect(
        self, why: str, column: str = "", instead: Sequence[str] = (), *, advise: bool = True
    ) -> str:
        """Return the message for a line that has no effect, with a line that would have one.

        Args:
            why: the reason, without a full stop.
            column: the column with the wrong text.
            instead: candidates to replace it.
            advise: whether to show a line to write instead.
        """
        message = f"{self.file}, line {self.number}, does not count: {why}."
        if not advise:
            return message
        rows = [{**self.cells, column: each} for each in instead]
        lines = [csv_line(row.values(), self.separator) for row in rows]
        if not lines:
            lines = [f"# {csv_line(self.cells.values(), self.separator)}"]
        way = "Write instead" if instead else "Change the line, or skip it"
        return "\n".join([f"{message} {way}:", *lines])


def number_of(problem: str) -> str:
    """Return the number of a problem from its id or number."""
    return problem.partition("-")[0].zfill(2)


Line = TypeVar("Line", bound=BookLine)


def read_lines(path: Path, kind: type[Line]) -> list[Line]:
    """Return the lines of a file; none if the file does not exist.

    Args:
        path: the file.
        kind: their class.

    Raises:
        UsageError: the file can't be read, or some lines are invalid.
    """
    if not path.exists():
        return []
    table = read_table(path)
    columns = [name.lower() for name in table.columns]
    if missing := [name for name in kind.needed if name not in columns]:
        raise UsageError(f"{path} has no column {', '.join(missing)} in its first line.")
    lines, invalid = [], []
    for row in table.rows:
        try:
            if len(row.cells) != len(columns):
                raise ValueError(f"it has {len(row.cells)} columns, not {len(columns)}")
            texts = [from_cell(text.strip()) for text in row.cells]
            line = kind(row.line, dict(zip(columns, texts, strict=True)), table.separator)
            if empty := [name for name in kind.needed if not line.cells[name]]:
                raise ValueError(f"its column {quoted(empty[0])} is empty")
            line.check()
            lines.append(line)
        except ValueError as error:
            invalid.append(f"{path.name}, line {row.line}: {error}.")
    if invalid:
        raise UsageError("\n".join(invalid))
    return lines


def undisputed(lines: Sequence[Line], problem: ProblemResult, wrong: dict[str, None]) -> list[Line]:
    """Return the lines that no other line contradicts, each once.

    A line for one student takes precedence over a line for the whole class.

    Args:
        lines: the lines for a problem of one student.
        problem: the result of the tests.
        wrong: collects messages about lines without effect.
    """
    kept: dict[frozenset[str], Line] = {}
    for line in sorted(lines, key=lambda line: line.for_everybody):
        parts = line.parts(problem)
        same = [other for other in lines if other.parts(problem) & parts]
        rivals = [
            str(other.number)
            for other in same
            if other.for_everybody == line.for_everybody
            and (other.value, other.parts(problem)) != (line.value, parts)
        ]
        if rivals:
            why = f"line {' and '.join(rivals)} says something else about the same"
            wrong[line.without_effect(why)] = None
        elif not line.for_everybody or all(other.for_everybody for other in same):
            kept.setdefault(parts, line)
    return [*kept.values()]


def read_points(name: str, text: str, also: str = "") -> float:
    """Return the number of points in a cell.

    Args:
        name: the column.
        text: the cell.
        also: another valid content of the cell.

    Raises:
        ValueError: the cell contains no valid number.
    """
    points = parse_points(text)
    if points is None:
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        more = f", or {also!r}" if also else ""
        raise ValueError(
            f"{name!r} is {quoted(short)}. Write a number from 0 to {MOST_POINTS:,}, such as 2.5"
            f"{more}"
        )
    return points
