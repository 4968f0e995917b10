"""Read and write the gradebook files of platforms.

Some columns of such a file identify students, and other columns contain marks.

Canvas: the file of *Export entire gradebook*. The row `Points Possible` contains the maxima. In
columns that can't be imported, this row contains `(read only)`.

Moodle: the file of *Download grading worksheet*. The number in `Identifier`, such as `Participant
123`, is different in each assignment. The column `Last modified (grade)` must not be changed,
because Moodle uses it to detect marks that were changed after the download.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from grader.csv_table import Row, Table
from grader.errors import UsageError
from grader.gradebook.lines import read_points
from grader.result import shown
from grader.text import from_cell, parse_number, quoted

_POINTS_POSSIBLE = "points possible"
_READ_ONLY = "read only"
_TEST_STUDENTS = {"Student, Test", "Test Student"}
_LAST_NUMBER = re.compile(r"[0-9]+\Z")
_TITLE_AND_ID = re.compile(r"(.*) \(([0-9]+)\)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Platform:
    """The columns of a platform's file. Column names can be in upper or lower case.

    Attributes:
        ids: maps the possible names of a column to templates for the keys of a student. In a
            template, `{cell}` is the text of the cell and `{number}` is the number at its end. The
            first column is required.
        names: the columns with the student's name.
        mark: the column for marks. If it is empty, the user chooses the column.
        has_assignments: whether the names of columns for marks contain an id, as in
            `Week 3 (123456)`. In such a file, one row contains the maximum of each column.
        most: the column with the maximum of each mark; empty if there is none.
        lock: the column that shows whether a mark is locked. If it is empty, the column for marks
            shows this.
        locked: maps each value that locks a mark, in capitals, to the reason.
        has_new_numbers: whether the ids are different in each assignment. Such an id can be that of
            a group.
        missing: advice to the user if a required column is missing.
    """

    ids: Mapping[tuple[str, ...], Sequence[str]]
    names: Sequence[str] = ()
    mark: str = ""
    has_assignments: bool = False
    most: str = ""
    lock: str = ""
    locked: Mapping[str, str] = field(default_factory=dict)
    has_new_numbers: bool = False
    missing: str = ""


PLATFORMS = {
    "canvas": Platform(
        ids={("ID",): ["canvas:{cell}"]},
        names=["Student", "FirstName", "LastName"],
        has_assignments=True,
        locked={"EX": "excused", "N/A": "not assigned to this student"},
    ),
    "moodle": Platform(
        ids={
            ("Identifier",): ["moodle:{number}", "participant {number}"],
            ("Email address",): ["{cell}"],
        },
        names=["Full name"],
        mark="Grade",
        most="Maximum grade",
        lock="Grade can be changed",
        locked={"NO": "the grade is locked"},
        has_new_numbers=True,
        missing="In Moodle, set the language to English for download and upload, and grade with "
        "points instead of a scale of words. Or use `grader export csv`.",
    ),
    "gradescope": Platform(
        ids={("Email", "Email Address"): ["{cell}"], ("SID", "Student ID"): ["{cell}"]},
        names=["Name", "First Name", "Last Name"],
    ),
}
"""Maps the names of platforms on the command line to the columns of their files."""


def any_csv(id_column: str) -> Platform:
    """Return a platform for any CSV file in which this column identifies students."""
    return Platform(ids={(id_column,): ["{cell}"]})


@dataclass(frozen=True)
class SheetPerson:
    """A student's row in a platform's file.

    Attributes:
        row: the row.
        keys: texts that identify the student, such as an id or an e-mail address.
        name: the name in the file.
        most: the maximum of the mark; None if the file does not contain it.
        locked: the reason why the mark can't be changed; empty if it can.
    """

    row: Row
    keys: Sequence[str]
    name: str
    most: float | None
    locked: str

    @property
    def id(self) -> str:
        """The first key, without the name of the platform."""
        return self.keys[0].partition(":")[2] or self.keys[0]

    def __str__(self) -> str:
        """Return the name and the id."""
        return f"{self.name} ({self.id})" if self.name else self.id


@dataclass
class Sheet:
    """A platform's file.

    Attributes:
        platform: the platform of the file.
        table: the content of the file.
        column: the column of the marks.
        worth: the row for the maximum of a new column. It is None if no column is added, or if the
            file has no such row.
        people: the rows of students.
        messages: messages about skipped rows.
    """

    platform: Platform
    table: Table
    column: int
    worth: Row | None
    people: list[SheetPerson] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @cached_property
    def has_comma(self) -> bool:
        """Whether numbers in the downloaded file have a decimal comma."""
        columns = [self.column, *self.table.present(self.platform.most)]
        cells = [row.value(column) for row in self.table.rows for column in columns]
        numbers = [text for text in cells if parse_number(text) is not None]
        return any("," in text for text in numbers) and not any("." in text for text in numbers)

    def write(self, row: Row, points: float) -> None:
        """Write points, rounded to hundredths, to the column of the marks."""
        text = shown(points)
        self.table.fill(row, self.column, text.replace(".", ",") if self.has_comma else text)


def read_sheet(platform: Platform, table: Table, column: str, new_column: str) -> Sheet:
    """Read the file of a platform.

    Args:
        platform: the platform.
        table: the content of the file.
        column: the name or the id of the column for marks; may be empty.
        new_column: the name of a column to add; may be empty.

    Raises:
        UsageError: a column is ambiguous or missing, or a maximum is not a number.
    """
    _require_columns(platform, table)
    rows = table.rows if platform.has_assignments else []
    possible = next((row for row in rows if _POINTS_POSSIBLE in row.value(0).lower()), None)
    if new_column and not platform.mark:
        sheet, most = Sheet(platform, table, _new_column(table, new_column), possible), None
    else:
        index = _chosen_column(platform, table, column or new_column, possible)
        sheet = Sheet(platform, table, index, None)
        most = _points(table, possible, index) if possible else None
        if platform.has_assignments and most is None:
            sheet.messages.append(f"{table.name} does not contain the maximum of the marks.")
    for row in table.rows:
        if row is not possible:
            _read_person(sheet, row, most)
    return sheet


def _require_columns(platform: Platform, table: Table) -> None:
    try:
        for names in (next(iter(platform.ids)), (platform.mark,), (platform.most,)):
            if any(names):
                table.needed(*names)
    except UsageError as error:
        raise UsageError(f"{error} {platform.missing}".strip()) from None


def _read_person(sheet: Sheet, row: Row, most: float | None) -> None:
    """Add the student of a row to the sheet. If the row has no id, add a message instead."""
    table, platform = sheet.table, sheet.platform
    name = " ".join(filter(None, (row.value(n) for n in table.present(*platform.names))))
    keys = [*dict.fromkeys(_keys(platform, table, row))]
    if keys and not (platform.has_assignments and name in _TEST_STUDENTS):
        for column in table.present(platform.most):
            most = _points(table, row, column)
        lock = table.present(platform.lock) or [sheet.column]
        locked = platform.locked.get(row.value(lock[0]).upper(), "")
        sheet.people.append(SheetPerson(row, keys, name, most, locked))
    elif name and not keys:
        sheet.messages.append(f"Line {row.line} has no id, so it was not changed: {name}.")


def _points(table: Table, row: Row, column: int) -> float | None:
    """Return the number of points in a cell; None for an empty cell.

    Raises:
        UsageError: the content of the cell is not a number.
    """
    text = row.value(column)
    try:
        return read_points(table.columns[column], text) if text else None
    except ValueError as error:
        raise UsageError(f"{table.name}, line {row.line}: {error}.") from None


def _keys(platform: Platform, table: Table, row: Row) -> Iterator[str]:
    for names, forms in platform.ids.items():
        for column in table.present(*names):
            text = from_cell(row.value(column))
            number = _LAST_NUMBER.search(text)
            for form in forms if text else ():
                if number or "{number}" not in form:
                    yield form.format(cell=text, number=number and number[0])


def _chosen_column(platform: Platform, table: Table, chosen: str, possible: Row | None) -> int:
    """Return the index of the column for the marks: the chosen column, or the only possible column.

    Raises:
        UsageError: the column is ambiguous or missing.
    """
    if platform.mark:
        if chosen:
            raise UsageError(f"This file has only one column for marks, {quoted(platform.mark)}.")
        return table.needed(platform.mark)
    names = table.columns
    ids = {column for each in platform.ids for column in table.present(*each)}
    candidates = [
        n
        for n, name in enumerate(names)
        if n not in ids and (not platform.has_assignments or _is_assignment(name, n, possible))
    ]
    columns = [n for n in candidates if names[n] == chosen]
    columns = columns or [n for n in candidates if chosen in _title_and_id(names[n])]
    if not chosen and platform.has_assignments:
        columns = candidates
    if len(columns) == 1:
        return columns[0]
    asked = f"{table.name} has no such column." if chosen and not columns else "Which column?"
    listed = ", ".join(quoted(names[n]) for n in columns or candidates)
    choice = f"The columns are: {listed}. Choose one with --column, or add" if listed else "Add"
    raise UsageError(f"{asked} {choice} one with --new-column.")


def _is_assignment(name: str, column: int, possible: Row | None) -> bool:
    is_read_only = possible is not None and _READ_ONLY in possible.value(column).lower()
    return bool(_TITLE_AND_ID.fullmatch(name)) and not is_read_only


def _title_and_id(column: str) -> Sequence[str]:
    match = _TITLE_AND_ID.fullmatch(column)
    return match.groups() if match else [column]


def _new_column(table: Table, new: str) -> int:
    name = new.strip()
    if not name or name in table.columns:
        raise UsageError(f"{table.name} already has a column {quoted(name)}; use --column.")
    return table.add_column(name)
