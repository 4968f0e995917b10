"""What stands in a folder: every entry classified once, by its name and kind alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import PurePath

from grader.intake.noise import is_minor
from grader.intake.problem_names import is_bare, problem_from_name
from grader.intake.tree import Kind, TreeEntry

ALL_PROBLEMS = "problems"
"""The folder in which the course keeps its problems' folders."""


class Role(Enum):
    """What an entry may be for whoever looks for work."""

    PROBLEM = "a problem's folder"
    ALL_PROBLEMS = "the folder of all problems"
    FOLDER = "any other folder"
    NAMED = "a single file whose name tells its problem"
    BARE = "a single file called problem.py"
    ARCHIVE = "an archive"
    FILE = "any other file"
    MINOR = "a file of a tool or of the course"


@dataclass(frozen=True)
class Seen:
    """An entry with its role, and the problem that its name tells, if any."""

    entry: TreeEntry
    role: Role
    problem: str = ""


@dataclass(frozen=True)
class Survey:
    """A folder seen through.

    Attributes:
        folder: which one.
        known: the problems of the course.
        seen: what stands in it, by name, but for what tools leave behind.
    """

    folder: TreeEntry
    known: tuple[str, ...]
    seen: tuple[Seen, ...]

    def of(self, *roles: Role) -> list[TreeEntry]:
        """Return the entries that have one of these roles."""
        return [seen.entry for seen in self.seen if seen.role in roles]

    def single_files(self, bare: str) -> list[tuple[TreeEntry, str]]:
        """Return the single files whose names tell a problem, each with that problem.

        Args:
            bare: whose a `problem.py` is; empty if nobody can know, which leaves it out.
        """
        single = (seen for seen in self.seen if seen.role in (Role.NAMED, Role.BARE))
        return [(seen.entry, id) for seen in single if (id := seen.problem or bare)]

    @cached_property
    def files(self) -> list[TreeEntry]:
        """What was handed in beside folders."""
        handed_in = (seen.entry for seen in self.seen if seen.role is not Role.MINOR)
        return [entry for entry in handed_in if entry.kind is not Kind.FOLDER]

    @property
    def scripts(self) -> list[TreeEntry]:
        """What looks like code, such as `bob.py`, `bob.py.txt` or a notebook."""
        plain = (file for file in self.files if file.is_plain_file)
        return [file for file in plain if {".py", ".ipynb"} & _endings(file.name)]

    @cached_property
    def folders(self) -> list[TreeEntry]:
        """All folders, whatever they are for."""
        return [seen.entry for seen in self.seen if seen.entry.kind is Kind.FOLDER]

    def with_problems(self, sought: tuple[str, ...]) -> Survey | None:
        """Return where these problems' folders stand: here or in its `problems`, if anywhere.

        Raises:
            Refused: its `problems` can't be read.
        """
        if any(seen.role is Role.PROBLEM and seen.problem in sought for seen in self.seen):
            return self
        for folder in self.of(Role.ALL_PROBLEMS) if self.folder.name != ALL_PROBLEMS else ():
            return survey(folder, self.known).with_problems(sought)
        return None


def survey(folder: TreeEntry, known: tuple[str, ...]) -> Survey:
    """Classify what stands in a folder.

    Args:
        folder: which one.
        known: the problems of the course.

    Raises:
        Refused: the folder can't be read.
    """
    return Survey(folder, known, tuple(_classified(c, known) for c in folder.children()))


def _endings(name: str) -> set[str]:
    return set(PurePath(name.lower()).suffixes)


def _classified(entry: TreeEntry, known: tuple[str, ...]) -> Seen:
    name = entry.name
    if name in known and entry.kind is not Kind.FILE:
        return Seen(entry, Role.PROBLEM, name)
    if entry.kind is Kind.FOLDER:
        return Seen(entry, Role.ALL_PROBLEMS if name == ALL_PROBLEMS else Role.FOLDER)
    if is_minor(name):
        return Seen(entry, Role.MINOR)
    if is_bare(name):
        return Seen(entry, Role.BARE)
    if problem := problem_from_name(name, known):
        return Seen(entry, Role.NAMED, problem)
    return Seen(entry, Role.ARCHIVE if entry.is_archive else Role.FILE)
