"""The book: the folder of an instructor's own files, apart from all that the grader makes.

It is kept in git beside the course, and the folder of reports can be lost: the next run makes it
anew.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from grader.errors import UsageError
from grader.gradebook import corrections, criteria, late_policy, roster
from grader.gradebook.roster import Roster, read_roster

NAMES = "names.csv"

FOLDER = "book"
"""What the folder is called, beside that of the reports, where nothing else is said."""

FILES = (corrections.FILE, criteria.FILE, late_policy.FILE, NAMES, roster.FILE)
_NEAR = 0.8
"""So near names must be for one to be meant by the other, 1 if they are the same."""


class GradebookFolder:
    """The instructor's own files.

    Args:
        folder: where they are; it need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """Return where a file is read from, whether or not it is there."""
        return self.folder / name

    @cached_property
    def roster(self) -> Roster:
        """Who is in the class.

        Raises:
            UsageError: the file can't be read.
        """
        return read_roster(self.path(roster.FILE))

    def told(self) -> list[str]:
        """Return a line on what was read from where, and on files that are not read."""
        here = [name for name in FILES if (self.folder / name).exists()]
        told = [f"The book: {self.folder} ({', '.join(here)})."] if here else []
        return [*told, *self._misnamed(here)]

    def _misnamed(self, here: Collection[str]) -> Iterator[str]:
        """Yield a line for each file that nothing reads, by a name near that of one that isn't."""
        missing = [name for name in FILES if name not in here]
        for path in sorted(self.folder.glob("*")):
            meant = get_close_matches(path.name.lower(), missing, n=1, cutoff=_NEAR)
            if meant and path.name not in FILES:
                yield f"{path} is not read: the name of that file is {meant[0]}."


def open_gradebook_folder(folder: Path | None, reports: Path) -> tuple[GradebookFolder, list[str]]:
    """Return the book of a folder of reports, and what to say of where it was read from.

    Args:
        folder: where it is said to be; None for beside the reports.
        reports: the folder of reports.

    Raises:
        UsageError: there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise UsageError(
            f"There is no folder {folder} with corrections, deadlines and the roster. Say another "
            f"--book, or make it: mkdir -p {shlex.quote(str(folder))}"
        )
    beside = reports.absolute().parent / FOLDER
    named = _short(beside)
    book = GradebookFolder(folder or named)
    told = book.told()
    told += [
        f"{reports / name} is not read: move it to {book.folder}."
        for name in FILES
        if (reports / name).exists() and reports.resolve() != book.folder.resolve()
    ]
    here = Path(FOLDER)
    is_other = here.is_dir() and here.resolve() != book.folder.resolve()
    if folder is None and is_other and any((here / name).exists() for name in FILES):
        told.append(f"The folder {here} was not read, as it isn't beside {reports}: say --book.")
    return book, told


def _short(path: Path) -> Path:
    """Return a path as it is written from where one is."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
