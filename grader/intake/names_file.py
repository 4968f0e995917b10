"""`names.csv`: what the instructor answered once for all to "did you mean".

Each line says what something is called (`found`) and what that means (`means`): a problem, or a
student. More columns may stand beside these.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader.errors import UsageError
from grader.files import column_names, read_rows
from grader.intake.problem_names import problem_from_name
from grader.text import from_cell, quoted

NAMES_FILE = "names.csv"
"""What it is called, in the instructor's book."""

_COLUMNS = ("found", "means")


@dataclass(frozen=True)
class Names:
    """What names mean.

    Attributes:
        problems: for what a file or a folder in a submission is called, the id of its problem.
        people: for what a submission is called, or its identity, whose it is.
    """

    problems: Mapping[str, str] = field(default_factory=dict)
    people: Mapping[str, str] = field(default_factory=dict)


def read_names(path: Path, problems: Iterable[str]) -> Names:
    """Return what the file says; nothing if there is none.

    Args:
        path: the file.
        problems: the ids of the course's.

    Raises:
        UsageError: it is not as it should be; the text says where.
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
    """Return why a line can do nothing, as the rest of a sentence; empty if it may do something."""
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
    rows = read_rows(path, comments=False)
    columns = column_names(rows)
    if not {*_COLUMNS} <= {*columns}:
        raise UsageError(f"{path} has to have the columns {' and '.join(_COLUMNS)}.")
    lines = []
    for line, cells in rows[1:]:
        row = dict(zip(columns, cells, strict=False))
        found, means = (
            from_cell(unicodedata.normalize("NFC", row.get(name, ""))) for name in _COLUMNS
        )
        if found and means.strip():
            lines.append((line, (found, means.strip())))
    return lines
