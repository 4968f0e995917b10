"""Moodle's grading worksheet: the file of *Download grading worksheet* and *Upload*.

`Identifier`, such as `Participant 123`, identifies a student, by another number in each assignment.
Moodle compares `Last modified (grade)` to detect other changes, so that column is kept.
"""

from __future__ import annotations

import re

from grader.errors import UsageError
from grader.gradebook.export.sheet import (
    Order,
    Sheet,
    SheetFormat,
    SheetPerson,
)
from grader.gradebook.export.table import Row, Table
from grader.gradebook.roster import squeezed
from grader.result import SubmissionResult

IN_OTHER_LANGUAGES = (
    "Moodle writes and reads the names of columns in your own language there: set it to English "
    "for download and upload, or use `grader export csv`."
)

OF_ANOTHER_WEEK = (
    "Moodle gives students new numbers in each assignment, and {name} is in both lists: use "
    "--by-name, or add a line for the number to names.csv, such as moodle:{number},{identity}."
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
        raise UsageError("Moodle's worksheet has one column for marks, 'Grade'.")
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
    ids = [f"moodle:{id}", f"{_NAMELESS} {id}", _said(table, row, "Email address").lower()]
    keys = [name] if order.by_name else ids
    locked = _LOCKED if is_locked else ""
    worth = table.points(row, "Maximum grade", most)
    return SheetPerson(row, tuple(filter(None, keys)), name, id, worth, locked)


def _said(table: Table, row: Row, name: str) -> str:
    column = table.column(name)
    return "" if column is None else row.value(column)


def _fits(person: SheetPerson, result: SubmissionResult) -> bool:
    """Return whether a row and a result belong together: a number can also be a group's.

    The e-mail address identifies a member. Otherwise the names must agree, unless the assignment
    hides them. The name of a group may precede a student's.
    """
    members = {member.lower() for member in result.members if "@" in member}
    if members & {key.lower() for key in person.keys}:
        return True
    name, known = squeezed(result.full_name), squeezed(person.name)
    return not name or name.startswith(_NAMELESS) or (bool(known) and name.endswith(known))


PLATFORM = SheetFormat(_sheet, "", _fits, OF_ANOTHER_WEEK, OF_GROUPS)
