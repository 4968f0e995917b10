"""Read `names.csv`, in which the instructor explains unknown names of files and students.

Each line maps an unknown name (column `found`) to a problem or a student (column `means`). Other
columns are ignored.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.csv_table import read_table
from grader.errors import UsageError
from grader.intake.problem_names import problem_from_name
from grader.text import from_cell, quoted

NAMES_FILE = "names.csv"
"""The name of the file in the folder with the instructor's files."""

_COLUMNS = ("found", "means")


@dataclass(frozen=True)
class Names:
    """The content of `names.csv`.

    Attributes:
        problems: maps the unknown name of a file or folder to the id of its problem.
        people: maps the unknown name of a student to the student in the column `means`.
    """

    problems: dict[str, str] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)


def read_names(path: Path, problems: Iterable[str]) -> Names:
    """Read `names.csv`. Return an empty `Names` if the file does not exist.

    Args:
        path: the path of `names.csv`.
        problems: the ids of the course's problems.

    Raises:
        UsageError: a line is invalid. The message names the line.
    """
    known = tuple(problems)
    names = Names()
    for line, name, text in _lines(path):
        problem = problem_from_name(f"{text}.py", known)
        meanings, meaning = (names.problems, problem) if problem else (names.people, text)
        first = meanings.setdefault(name, meaning)
        fault = _fault(name, meaning, is_problem=bool(problem))
        if not fault and first != meaning:
            fault = f"can't mean both {quoted(first)} and {quoted(meaning)}"
        if fault:
            raise UsageError(f"{path}, line {line}: {quoted(name)} {fault}.")
    return names


def _fault(name: str, meaning: str, *, is_problem: bool) -> str:
    """Return the reason why a line is invalid, as the rest of a sentence.

    Return "" for a valid line.
    """
    if name.lower().endswith(".ipynb"):
        return "is a notebook, which is not graded; copy its code to a Python file"
    if is_problem or not name.lower().endswith(".py"):
        return ""
    return (
        f"is a file, so it can mean a problem but not {quoted(meaning)}. If {quoted(meaning)} "
        f"submitted it, move it to a folder with that name"
    )


def _lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the number, the name and the meaning of each line in which both columns are filled."""
    if not path.is_file():
        return
    table = read_table(path, comments=False)
    columns = [name.lower() for name in table.columns]
    if not {*_COLUMNS} <= {*columns}:
        raise UsageError(f"{path} must have the columns {' and '.join(_COLUMNS)}.")
    for each in table.rows:
        row = dict(zip(columns, each.cells, strict=False))
        cells = (unicodedata.normalize("NFC", row.get(column, "")) for column in _COLUMNS)
        name, meaning = map(from_cell, cells)
        if name and meaning.strip():
            yield each.line, name, meaning.strip()
