"""The book: the folder with the instructor's own files.

It is kept in version control. The folder of reports can be deleted; the next run creates it again.
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
"""The default name of the folder, next to the reports."""

FILES = (corrections.FILE, criteria.FILE, late_policy.FILE, NAMES, roster.FILE)
_NEAR = 0.8
"""The similarity of two names above which one is a misspelling of the other."""


class GradebookFolder:
    """The instructor's own files.

    Args:
        folder: their folder; it need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """Return the path of a file, which need not exist."""
        return self.folder / name

    @cached_property
    def roster(self) -> Roster:
        """The students of the class.

        Raises:
            UsageError: the file can't be read.
        """
        return read_roster(self.path(roster.FILE))

    def told(self) -> list[str]:
        """Return messages about the files that are read and those that are not."""
        here = [name for name in FILES if (self.folder / name).exists()]
        told = [f"The book: {self.folder} ({', '.join(here)})."] if here else []
        return [*told, *self._misnamed(here)]

    def _misnamed(self, here: Collection[str]) -> Iterator[str]:
        """Yield a message for each file with nearly the name of a missing file."""
        missing = [name for name in FILES if name not in here]
        for path in sorted(self.folder.glob("*")):
            meant = get_close_matches(path.name.lower(), missing, n=1, cutoff=_NEAR)
            if meant and path.name not in FILES:
                yield f"{path} is not read: the name of that file is {meant[0]}."


def open_gradebook_folder(folder: Path | None, reports: Path) -> tuple[GradebookFolder, list[str]]:
    """Return the book for a folder of reports, and messages about its files.

    Args:
        folder: the folder that the user chose; None for the default next to the reports.
        reports: the folder of reports.

    Raises:
        UsageError: the folder does not exist.
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
    """Return a path relative to the current folder, if it is inside."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
