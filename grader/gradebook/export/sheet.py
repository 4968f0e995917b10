"""Common parts of all platforms' files: rows of students, and a column for marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.errors import UsageError
from grader.gradebook.export.table import Row, Table
from grader.gradebook.folder import GradebookFolder
from grader.result import SubmissionResult
from grader.text import parse_number, quoted


@dataclass(frozen=True, kw_only=True)
class Order:
    """A request to export marks.

    Attributes:
        platform: the platform.
        file: the downloaded file; unchanged unless `out` is the same.
        folder: of the reports.
        book: the instructor's own files.
        out: the file to write.
        problem: the id of the problem; empty for a sum.
        part: the part to sum; empty for all required parts.
        column: the name or the id of the column; may be empty.
        new_column: the name of a column to add.
        id_column: the column that identifies students, for any CSV file.
        by_name: whether to match full names instead of ids.
        scale: whether to convert marks to the scale of the file.
        feedback: the archive for feedback; None for no archive.
        download: Canvas's download of submissions, for the names in the archive.
        also: by the name of a submission, other identities of the student.
    """

    platform: str
    file: Path
    folder: Path
    book: GradebookFolder
    out: Path
    problem: str = ""
    part: str = ""
    column: str = ""
    new_column: str = ""
    id_column: str = ""
    by_name: bool = False
    scale: bool = False
    feedback: Path | None = None
    download: Path | None = None
    also: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class SheetPerson:
    """A row for one student.

    Attributes:
        row: the row.
        keys: any of these identifies the student.
        name: the name in the file.
        id: the platform's id, if it is not a key.
        most: the maximum of the mark; None if the file does not contain it.
        locked: why the mark can't be changed; may be empty.
        may_lack: whether a missing mark is normal, as for a test student.
    """

    row: Row
    keys: tuple[str, ...]
    name: str = ""
    id: str = ""
    most: float | None = None
    locked: str = ""
    may_lack: bool = False


@dataclass
class Sheet:
    """A platform's file.

    Attributes:
        table: the table.
        column: the column of the marks.
        people: the rows of students.
        told: messages about skipped rows.
        worth: the row with the maximum of a new column, if there is one.
        numbers: columns that show whether numbers have a decimal point or comma.
    """

    table: Table
    column: int
    people: list[SheetPerson]
    told: list[str] = field(default_factory=list)
    worth: Row | None = None
    numbers: list[int] = field(default_factory=list)

    def writes_comma(self) -> bool:
        """Return whether numbers in the file have a decimal comma."""
        columns = [self.column, *self.numbers]
        cells = [row.value(column) for row in self.table.rows for column in columns]
        said = [cell for cell in cells if parse_number(cell) is not None]
        return any("," in cell for cell in said) and not any("." in cell for cell in said)


@dataclass(frozen=True)
class SheetFormat:
    """The format of a platform's file.

    Attributes:
        sheet: reads a file.
        platform: the only platform with submissions that can have a row; empty for all.
        fits: checks whether a row and a result with a common key belong together.
        namesakes: the message for a student with another id, with `name`, `number` and `identity`.
        misfits: the message for rows that do not fit.
    """

    sheet: Callable[[Table, Order], Sheet]
    platform: str = ""
    fits: Callable[[SheetPerson, SubmissionResult], bool] = lambda person, result: True
    namesakes: str = ""
    misfits: str = ""


def chosen_column(table: Table, order: Order, candidates: Sequence[int]) -> int:
    """Return the column to fill in: the chosen one, a new one, or the only candidate.

    Args:
        table: the table.
        order: the request.
        candidates: the columns for marks.

    Raises:
        UsageError: the column is ambiguous or missing.
    """
    columns = table.columns
    if order.new_column:
        return _new_column(table, order)
    wanted = order.column
    found = [n for n in candidates if not wanted or columns[n] == wanted]
    if wanted and not found:
        found = [n for n in candidates if wanted in title_and_id(columns[n])]
    if len(found) == 1:
        return found[0]
    names = ", ".join(quoted(columns[n]) for n in found or candidates)
    if not names:
        raise UsageError(
            f"{table.name} has no column for a mark. Say what to call a new one: --new-column."
        )
    asked = f"{table.name} has no such column." if wanted and not found else "Which column?"
    raise UsageError(f"{asked} There are: {names}. Say which with --column.")


def _new_column(table: Table, order: Order) -> int:
    name = order.new_column.strip()
    if not name or name in table.columns:
        raise UsageError(f"{table.name} has a column {quoted(name)} already; use --column.")
    if name.startswith(("=", "+", "-", "@")) or not name.isprintable():
        raise UsageError(
            f"A spreadsheet would run a column called {quoted(name)}; choose another name."
        )
    return table.add_column(name)


def title_and_id(column: str) -> tuple[str, str]:
    """Split `Name (123)` into name and id; the id may be empty."""
    title, bracket, id = column.rpartition(" (")
    is_id = bracket and id.endswith(")") and id[:-1].isascii() and id[:-1].isdecimal()
    return (title, id[:-1]) if is_id else (column, "")
