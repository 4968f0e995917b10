"""Canvas's gradebook: the file of *Export entire gradebook* and *Import*.

Above the students there is a row with `Points Possible`, in which columns that can't be imported
contain `(read only)`, and sometimes a row about manual posting. `ID` identifies a student. The
marks `EX` and `N/A` are excused and not assigned.
"""

from __future__ import annotations

import re

from grader.errors import UsageError
from grader.gradebook.export.sheet import (
    Order,
    Sheet,
    SheetFormat,
    SheetPerson,
    chosen_column,
    title_and_id,
)
from grader.gradebook.export.table import Row, Table
from grader.text import quoted

_POINTS_POSSIBLE = "points possible"
_READ_ONLY = "read only"
_SCORES = re.compile(r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)")
_LOCKED = {"EX": "excused there", "N/A": "not assigned to this student there"}
_TEST_STUDENTS = {"Student, Test", "Test Student"}


def _sheet(table: Table, order: Order) -> Sheet:
    id_column = table.needed("ID")
    if table.column("Student", "LastName") is None:
        table.needed("Student")
    possible = next((row for row in table.rows if _says(row, 0, _POINTS_POSSIBLE)), None)
    candidates = [
        n
        for n, name in enumerate(table.columns)
        if title_and_id(name)[1]
        and not _SCORES.search(name)
        and not (possible and _says(possible, n, _READ_ONLY))
    ]
    if _SCORES.search(order.new_column):
        raise UsageError(f"Canvas has a reserved column {quoted(order.new_column)}.")
    column = chosen_column(table, order, candidates)
    cell = possible.value(column) if possible and not order.new_column else ""
    most = table.points(possible, "Points Possible", cell) if possible else None
    sheet = Sheet(table, column, [], worth=possible)
    if most is None and not order.new_column:
        sheet.told.append(f"{table.name} doesn't say how many points the marks are out of.")
    for row in table.rows:
        if row is possible or row.is_empty:
            continue
        name, id = _name(table, row), row.value(id_column)
        if id:
            sheet.people.append(_person(row, id, name, column, most))
        elif name:
            sheet.told.append(f"Line {row.line} has no ID, so it was left alone: {name}.")
    if not sheet.people:
        raise UsageError(f"{table.name} has no row with an ID; is it Canvas's whole gradebook?")
    return sheet


def _person(row: Row, id: str, name: str, column: int, most: float | None) -> SheetPerson:
    locked = _LOCKED.get(row.value(column).upper(), "")
    may_lack = name in _TEST_STUDENTS or bool(locked)
    return SheetPerson(row, (f"canvas:{id}",), name, id, most, locked, may_lack)


def _says(row: Row, column: int, text: str) -> bool:
    return text in row.value(column).lower()


def _name(table: Table, row: Row) -> str:
    columns = [table.column("Student")] if table.column("Student") is not None else []
    columns = columns or [table.column("LastName"), table.column("FirstName")]
    return ", ".join(row.value(n) for n in columns if n is not None and row.value(n))


PLATFORM = SheetFormat(_sheet)
