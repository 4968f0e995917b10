"""Lists that an instructor writes: CSV files, of which each line says one thing.

A comma or a semicolon stands between the cells, as spreadsheets have it. Empty lines and those that
begin with `#` say nothing. A line that can't be understood is named with its number, and the others
count all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from grader.errors import UsageError
from grader.files import column_names, read_rows
from grader.result import ProblemResult
from grader.text import MOST_POINTS, parse_points, quoted

LineOfFile = TypeVar("LineOfFile")

_LONGEST = 40
"""So many characters of a cell that is no number are shown."""


class WrongNumber(ValueError):  # noqa: N818  (a sentence for the instructor)
    """A cell has no number that can be meant."""


@dataclass(frozen=True)
class BookLine:
    """One line of a file about somebody's marks.

    Attributes:
        line: its number, by which it is named.
        submission: whose marks.
        problem: an id, or its number.
    """

    file: ClassVar[str]

    line: int
    submission: str
    problem: str

    def concerns(self, problem: ProblemResult) -> bool:
        """Tell whether it is about a problem."""
        return problem.id == self.problem or problem.id.startswith(f"{self.problem.zfill(2)}-")

    def not_followed(self, why: str) -> str:
        """Return the sentence about it if it does not count."""
        return _not_followed(self.file, self.line, why)


def number_of(problem: str) -> str:
    """Return the number of a problem, of which an id or the number is given."""
    return problem.partition("-")[0].zfill(2)


def read_lines(
    path: Path, needed: Sequence[str], understood: Callable[[int, dict[str, str]], LineOfFile]
) -> tuple[list[LineOfFile], list[str]]:
    """Return what the lines of a file say, and a sentence about each that says nothing.

    Args:
        path: the file; if there is none, nothing is said.
        needed: columns that have to be there; no cell of them is empty.
        understood: returns what a line says, by its number and its cells by column. It raises a
            ValueError whose text says why the line does not count.

    Raises:
        UsageError: the file as a whole can't be read, or a number in it can't be meant.
    """
    if not path.exists():
        return [], []
    rows = read_rows(path)
    columns = column_names(rows)
    if missing := [name for name in needed if name not in columns]:
        raise UsageError(f"{path} has no column {', '.join(missing)} in its first line.")
    found, told = [], []
    for line, cells in rows[1:]:
        try:
            found.append(understood(line, _by_column(columns, cells, needed)))
        except WrongNumber as error:
            raise UsageError(f"{path.name}, line {line}: {error}.") from None
        except ValueError as error:
            told.append(_not_followed(path.name, line, str(error)))
    return found, told


def _not_followed(file: str, line: int, why: str) -> str:
    return f"{file}, line {line}, does not count: {why}."


def read_points(name: str, text: str, also: str = "") -> float:
    """Return the number of points in a cell.

    Args:
        name: the column.
        text: the cell.
        also: what else the cell may say.

    Raises:
        WrongNumber: it has none.
    """
    found = parse_points(text)
    if found is None:
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        more = f", or {also!r}" if also else ""
        raise WrongNumber(
            f"{name!r} is {quoted(short)}. Write a number from 0 to {MOST_POINTS:,}, such as 2.5"
            f"{more}"
        )
    return found


def _by_column(columns: list[str], cells: list[str], needed: Sequence[str]) -> dict[str, str]:
    if len(cells) != len(columns):
        raise ValueError(f"it has {len(cells)} columns, not {len(columns)}")
    row = dict(zip(columns, map(str.strip, cells), strict=True))
    for name in needed:
        if not row[name]:
            raise ValueError(f"its column {quoted(name)} is empty")
    return row
