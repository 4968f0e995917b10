"""What all platforms' files have in common: rows of people, and a column for their marks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.errors import UsageError
from grader.gradebook.export.table import Row, Table
from grader.gradebook.folder import GradebookFolder
from grader.result import SubmissionResult
from grader.text import parse_number, quoted


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to export, and to where.

    Attributes:
        platform: whose file it is.
        file: the file as it was downloaded; it stays as it is unless `out` is the same.
        folder: of the reports.
        book: the instructor's own files.
        out: the file to write.
        problem: whose marks, by id; empty for the sum of all of a part.
        part: of the sum.
        column: the name or the id of the column to fill in; empty when there is no choice.
        new_column: the name of a column to add.
        id_column: the column by which people are known, where the platform doesn't say which.
        by_name: whether people are known by their full names rather than by the platform's ids.
        scale: whether marks are put on the file's scale.
        feedback: the archive to pack feedback into; None to pack none.
        download: the download of submissions, by whose names Canvas knows feedback.
        also: for the names of submissions, other identities of the same people.
        names: for the same, what means these people, and nobody else on the roster.
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
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class SheetPerson:
    """A row of the file that is about somebody.

    Attributes:
        row: the row.
        keys: by any of these it is known whose it is.
        name: what the file calls the person.
        id: the platform's own id, where the keys are something else.
        most: what the mark is out of; None where the file doesn't say.
        locked: why the mark there is left alone; empty if it isn't.
        may_lack: whether nothing is said when there is no mark, as for a platform's test student.
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
    """A platform's file, understood.

    Attributes:
        table: the file.
        column: where marks stand.
        people: the rows about people.
        told: sentences about rows that can't be understood.
        worth: the row that says how many points a new column is out of, if there is such a row.
        numbers: columns in which one sees whether numbers have a point or a comma.
    """

    table: Table
    column: int
    people: list[SheetPerson]
    told: list[str] = field(default_factory=list)
    worth: Row | None = None
    numbers: list[int] = field(default_factory=list)

    def writes_comma(self) -> bool:
        """Tell whether numbers in the file have a comma where others have a point."""
        columns = [self.column, *self.numbers]
        cells = [row.value(column) for row in self.table.rows for column in columns]
        said = [cell for cell in cells if parse_number(cell) is not None]
        return any("," in cell for cell in said) and not any("." in cell for cell in said)


@dataclass(frozen=True)
class SheetFormat:
    """How one platform's file is understood.

    Attributes:
        sheet: returns who is in a file, and where the marks stand.
        ids: returns the keys by which a result finds its row.
        fits: tells whether a row may be a result's, when they have a key in common.
        namesakes: what to say of somebody's `name` and `number` in the file, without a mark, if the
            mark of one who is called so, of that `identity`, is left over.
        misfits: what to say if a row was left as it was because it does not fit.
    """

    sheet: Callable[[Table, Order], Sheet]
    ids: Callable[[SubmissionResult, Order], Iterable[str]]
    fits: Callable[[SheetPerson, SubmissionResult], bool] = lambda person, result: True
    namesakes: str = ""
    misfits: str = ""


def identity_in(result: SubmissionResult, platform: str) -> list[str]:
    """Return a platform's own id of a submission; nothing for one of another platform."""
    kind, _, id = result.identity.partition(":")
    return [id] if kind == platform and id else []


def chosen_column(table: Table, order: Order, candidates: Sequence[int]) -> int:
    """Return the column that is to be filled in: the one that was chosen, a new one, or the only.

    Args:
        table: the file.
        order: what the instructor chose.
        candidates: the columns that may be meant.

    Raises:
        UsageError: it isn't known which one is meant.
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
    """Return what `Name (123)` is made of; the id is empty where there is none."""
    title, bracket, id = column.rpartition(" (")
    is_id = bracket and id.endswith(")") and id[:-1].isascii() and id[:-1].isdecimal()
    return (title, id[:-1]) if is_id else (column, "")
