"""Files of other places: Gradescope's roster and any CSV."""

from __future__ import annotations

from collections.abc import Iterable

from grader.errors import UsageError
from grader.gradebook.export.sheet import (
    Order,
    Sheet,
    SheetFormat,
    SheetPerson,
    chosen_column,
)
from grader.gradebook.export.table import Row, Table
from grader.text import from_cell, quoted


def _gradescope(table: Table, order: Order) -> Sheet:
    email = table.needed("Email", "Email Address")
    ids = [email, *(n for n in [table.column("SID", "Student ID")] if n is not None)]
    names = [table.column(name) for name in ("Name", "First Name", "Last Name")]
    column = _any_column(table, order)
    people = [
        SheetPerson(
            row,
            (*keys, *(f"gradescope:{key}" for key in keys)),
            " ".join(row.value(n) for n in names if n is not None).strip(),
        )
        for row in table.rows
        if (keys := _keys(row, ids))
    ]
    return Sheet(table, column, people)


def _plain(table: Table, order: Order) -> Sheet:
    if not order.id_column:
        names = ", ".join(map(quoted, table.columns))
        raise UsageError(f"By which column are people known? Say it with --id-column: {names}.")
    id_column = table.needed(order.id_column)
    column = _any_column(table, order)
    if column == id_column:
        raise UsageError("Marks can't go into the column by which people are known.")
    people = [
        SheetPerson(row, (from_cell(key),)) for row in table.rows for key in _keys(row, [id_column])
    ]
    return Sheet(table, column, people)


def _any_column(table: Table, order: Order) -> int:
    """Return the column that was chosen by its name, or a new one; none is filled in unasked."""
    if order.column or order.new_column:
        return chosen_column(table, order, range(len(table.columns)))
    raise UsageError("Which column is to be filled in? Say --column, or --new-column and a name.")


def _keys(row: Row, columns: Iterable[int]) -> tuple[str, ...]:
    return tuple(value.lower() for n in columns if (value := row.value(n)))


GRADESCOPE = SheetFormat(_gradescope, "gradescope")
PLAIN = SheetFormat(_plain)
