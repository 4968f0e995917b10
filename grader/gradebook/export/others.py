"""Files of other places: Gradescope's roster and any CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from grader.errors import UsageError
from grader.gradebook.export.sheet import (
    Order,
    Sheet,
    SheetFormat,
    SheetPerson,
    chosen_column,
    identity_in,
)
from grader.gradebook.export.table import Row, Table
from grader.gradebook.roster import first_name_first
from grader.result import SubmissionResult
from grader.text import from_cell, quoted


def _gradescope(table: Table, order: Order) -> Sheet:
    email = table.needed("Email", "Email Address")
    ids = [email, *(n for n in [table.column("SID", "Student ID")] if n is not None)]
    names = [table.column(name) for name in ("Name", "First Name", "Last Name")]
    column = _any_column(table, order)
    people = [
        SheetPerson(row, keys, " ".join(row.value(n) for n in names if n is not None).strip())
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
        SheetPerson(row, (first_name_first(from_cell(key)),))
        for row in table.rows
        for key in _keys(row, [id_column])
    ]
    return Sheet(table, column, people)


def _any_column(table: Table, order: Order) -> int:
    """Return the column that was chosen by its name, or a new one; none is filled in unasked."""
    if order.column or order.new_column:
        return chosen_column(table, order, range(len(table.columns)))
    raise UsageError("Which column is to be filled in? Say --column, or --new-column and a name.")


def _keys(row: Row, columns: Iterable[int]) -> tuple[str, ...]:
    return tuple(value.lower() for n in columns if (value := row.value(n)))


def _ids_of(platform: str) -> Callable[[SubmissionResult, Order], list[str]]:
    def ids(result: SubmissionResult, order: Order) -> list[str]:
        """Return the platform's id of a submission, and those of a group's members."""
        own = identity_in(result, platform)
        return [key.lower() for key in (*own, *(result.members if own else ()))]

    return ids


def _any_name(result: SubmissionResult, order: Order) -> list[str]:
    id = result.identity.partition(":")[2]
    names = [result.identity, id, *order.names.get(result.submission, ())]
    return [first_name_first(name).lower() for name in names if name]


GRADESCOPE = SheetFormat(_gradescope, _ids_of("gradescope"))
PLAIN = SheetFormat(_plain, _any_name)
