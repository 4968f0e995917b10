"""Read `names.csv`, the instructor's permanent answers to "did you mean".

Each line maps a name (`found`) to its meaning (`means`): a problem or a student. The file may have
more columns.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader.csv_table import read_table
from grader.errors import UsageError
from grader.intake.problem_names import problem_from_name
from grader.text import from_cell, quoted

NAMES_FILE = "names.csv"
"""The name of the file in the instructor's book."""

_COLUMNS = ("found", "means")


@dataclass(frozen=True)
class Names:
    """The meanings of names.

    Attributes:
        problems: the problem's id by the name of a file or folder in a submission.
        people: the student by the name or identity of a submission.
    """

    problems: Mapping[str, str] = field(default_factory=dict)
    people: Mapping[str, str] = field(default_factory=dict)


def read_names(path: Path, problems: Iterable[str]) -> Names:
    """Return the meanings in the file; none if there is no file.

    Args:
        path: the file.
        problems: the ids of the course's problems.

    Raises:
        UsageError: a line is invalid; the text names it.
    """
    known = tuple(problems)
    of_problems: dict[str, str] = {}
    of_people: dict[str, str] = {}
    for line, (found, means) in _lines(path):
        problem = problem_from_name(f"{means}.py", known)
        if why := _is_in_vain(found, means, problem):
            raise UsageError(f"{path}, line {line}: {quoted(found)} {why}.")
        names, meant = (of_problems, problem) if problem else (of_people, means)
        if names.setdefault(found, meant) != meant:
            both = f"{quoted(names[found])} and {quoted(meant)}"
            raise UsageError(f"{path}, line {line}: {quoted(found)} can't mean {both}.")
    return Names(of_problems, of_people)


def _is_in_vain(found: str, means: str, problem: str) -> str:
    """Return why a line has no effect, as the rest of a sentence; empty if it may have one."""
    if found.lower().endswith(".ipynb"):
        return "is a notebook, which is not graded; its code has to be in a file"
    if problem or not found.lower().endswith(".py"):
        return ""
    return (
        f"is a file: it can mean a problem, and not {quoted(means)}. If it is what {quoted(means)} "
        "handed in, put it into a folder of that name"
    )


def _lines(path: Path) -> list[tuple[int, tuple[str, str]]]:
    if not path.is_file():
        return []
    table = read_table(path, comments=False)
    columns = [name.lower() for name in table.columns]
    if not {*_COLUMNS} <= {*columns}:
        raise UsageError(f"{path} has to have the columns {' and '.join(_COLUMNS)}.")
    lines = []
    for each in table.rows:
        row = dict(zip(columns, each.cells, strict=False))
        found, means = (
            from_cell(unicodedata.normalize("NFC", row.get(name, ""))) for name in _COLUMNS
        )
        if found and means.strip():
            lines.append((each.line, (found, means.strip())))
    return lines
