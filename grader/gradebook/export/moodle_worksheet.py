"""Moodle's grading worksheet, as *Download grading worksheet* gives it and *Upload* takes it back.

A row is known by its `Identifier`, such as `Participant 123`. Moodle gives everybody another number
in each assignment, so a number of one week says nothing about the next. It compares `Last modified
(grade)` with what it knows, to see whether somebody graded in the meantime; that column stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from grader.errors import UsageError
from grader.gradebook.export.sheet import (
    Order,
    Sheet,
    SheetFormat,
    SheetPerson,
    identity_in,
)
from grader.gradebook.export.table import Row, Table
from grader.gradebook.roster import squeezed
from grader.result import SubmissionResult

IN_OTHER_LANGUAGES = (
    "Moodle writes and reads the names of columns in your own language there: set it to English "
    "for download and upload, or use `grader export csv`."
)

OF_ANOTHER_WEEK = (
    "Moodle gives everybody another number in each assignment, and {name} is in both lists: use "
    "--by-name, or say in names.csv whose a number is, such as moodle:{number},{identity}."
)

OF_GROUPS = (
    "If these numbers are of groups: a group's number is no participant's. Put Moodle's list of "
    "participants, with its column Groups, into the book as roster.csv, and grade once more; then "
    "members get the mark of their group."
)

_NUMBER = re.compile(r"\d+\Z")
_LOCKED = "the grade can't be changed there"
_NAMELESS = "participant"


def _sheet(table: Table, order: Order) -> Sheet:
    try:
        identifier = table.needed("Identifier")
        column = table.needed("Grade")
    except UsageError as error:
        raise UsageError(f"{error} {IN_OTHER_LANGUAGES}") from None
    if table.column("Scale") is not None and table.column("Maximum grade") is None:
        raise UsageError(f"{table.name} is graded by a scale of words, which points don't fit.")
    if order.column or order.new_column:
        raise UsageError("Moodle's worksheet is of one assignment, whose marks stand in 'Grade'.")
    numbers = [n for n in [table.column("Maximum grade")] if n is not None]
    sheet = Sheet(table, column, [], numbers=numbers)
    for row in table.rows:
        if match := _NUMBER.search(row.value(identifier)):
            sheet.people.append(_person(table, row, match[0], order))
        elif not row.is_empty:
            sheet.told.append(f"Line {row.line} has no identifier, so it was left alone.")
    return sheet


def _person(table: Table, row: Row, id: str, order: Order) -> SheetPerson:
    name, most = _said(table, row, "Full name"), _said(table, row, "Maximum grade")
    is_locked = _said(table, row, "Grade can be changed").lower() == "no"
    keys = [squeezed(name)] if order.by_name else [id, _said(table, row, "Email address").lower()]
    locked = _LOCKED if is_locked else ""
    worth = table.points(row, "Maximum grade", most)
    return SheetPerson(row, tuple(filter(None, keys)), name, id, worth, locked)


def _said(table: Table, row: Row, name: str) -> str:
    column = table.column(name)
    return "" if column is None else row.value(column)


def _ids(result: SubmissionResult, order: Order) -> Iterable[str]:
    if order.by_name:
        return [name] if (name := squeezed(result.full_name)) else []
    mails = [member.lower() for member in result.members if "@" in member]
    last = [_NUMBER.search(m) for m in result.members if m.lower().startswith(_NAMELESS)]
    return [*identity_in(result, "moodle"), *(match[0] for match in last if match), *mails]


def _fits(person: SheetPerson, result: SubmissionResult) -> bool:
    """Return whether a row may be a result's: in groups' folders numbers are those of groups.

    A member is known by the e-mail address. Of others the names have to agree; in an assignment
    that hides them they are hidden in both. A group's name may stand before a person's.
    """
    if {member.lower() for member in result.members} & {*person.keys}:
        return True
    name, known = squeezed(result.full_name), squeezed(person.name)
    return not name or name.startswith(_NAMELESS) or (bool(known) and name.endswith(known))


PLATFORM = SheetFormat(_sheet, _ids, _fits, OF_ANOTHER_WEEK, OF_GROUPS)
