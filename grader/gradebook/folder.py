"""Open the book: the folder with the instructor's files, such as corrections and the roster.

The book should be under version control. The folder of reports need not be, because each run can
create the reports again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from grader.errors import UsageError
from grader.gradebook import late_policy, roster
from grader.gradebook.lines import ByHand, Correction
from grader.gradebook.roster import Roster, read_roster

NAMES = "names.csv"

FOLDER = "book"
"""The name of the default folder, which is next to the folder of reports."""

FILES = (Correction.file, ByHand.file, late_policy.FILE, NAMES, roster.FILE)
_NEAR = 0.8
"""The smallest similarity at which a file name counts as a misspelling of another name."""


@dataclass(frozen=True)
class GradebookFolder:
    """The instructor's files.

    Attributes:
        folder: the folder of the files. It need not exist.
    """

    folder: Path

    def path(self, name: str) -> Path:
        """Return the path of a file in the folder. The file need not exist."""
        return self.folder / name

    @cached_property
    def roster(self) -> Roster:
        """The students of the class.

        Raises:
            UsageError: the file can't be read.
        """
        return read_roster(self.path(roster.FILE))

    def files_read(self) -> list[str]:
        """Return a message that lists the existing files. If there are none, return no message."""
        present = [name for name in FILES if self.path(name).exists()]
        return [f"The book: {self.folder} ({', '.join(present)})."] if present else []

    def files_unread(self, folder: Path) -> Iterator[str]:
        """Yield a message for each file with a misspelled name or in the wrong folder.

        Args:
            folder: the folder to check. It can be the book itself or another folder.
        """
        is_other = folder.resolve() != self.folder.resolve()
        for path in sorted(folder.glob("*")):
            for name in get_close_matches(path.name.lower(), FILES, n=1, cutoff=_NEAR):
                if is_other or not self.path(name).exists():
                    yield f"{path} is not read: move it to {self.path(name)}."


def open_gradebook_folder(folder: Path | None, reports: Path) -> tuple[GradebookFolder, list[str]]:
    """Return the instructor's files for a folder of reports, and messages about these files.

    Args:
        folder: the folder that the user chose; None for the default next to the reports.
        reports: the folder of reports.

    Raises:
        UsageError: the folder does not exist.
    """
    if folder is not None and not folder.is_dir():
        raise UsageError(
            f"The folder {folder} with corrections, deadlines and the roster does not exist. "
            f"Choose another --book, or create the folder: mkdir -p {shlex.quote(str(folder))}"
        )
    beside, here = reports.absolute().parent / FOLDER, Path.cwd()
    if beside.is_relative_to(here):
        beside = beside.relative_to(here)
    book = GradebookFolder(folder or beside)
    others = [book.folder, reports, *([] if folder else [Path(FOLDER)])]
    unread = [text for each in dict.fromkeys(others) for text in book.files_unread(each)]
    return book, [*book.files_read(), *unread]
