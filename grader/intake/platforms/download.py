"""What a platform's file has to say, and what it is given to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from grader.intake.layout import Layout
from grader.intake.problem_names import Problems
from grader.intake.tree import Kind, Refused, TreeEntry


@dataclass(frozen=True)
class Download:
    """A folder that may be a platform's download.

    Attributes:
        name: what it is called.
        children: what stands in it.
        beside: what stands beside it, if it is the only folder in what the instructor gave.
        around: what that is called.
    """

    name: str
    children: list[TreeEntry]
    beside: list[TreeEntry] = field(default_factory=list)
    around: str = ""

    @property
    def outer(self) -> str:
        """What the instructor gave is called."""
        return self.around or self.name


@dataclass(frozen=True)
class Platform:
    """How one platform's downloads are recognised.

    Attributes:
        look: returns who handed in what, or None when a folder is not of its kind. It looks at
            names, reads nothing but the platform's list of students, and guesses nothing: what fits
            nobody is told in a sentence.
        lists: by the names of its lists of students, the most bytes that are read of one.
        read: says of the name of any other file how many bytes are read of it at most.
        may_hold: tells whether a folder of this name can be a download that this stands in. What
            stands beside something is looked at only then.
        uploaded_as: says what the name of a file in a download may have been before the platform
            put something around it.
    """

    look: Callable[[Download, Problems], Layout | None]
    lists: Mapping[str, int] = field(default_factory=dict)
    read: Callable[[str], int] = lambda name: 0
    may_hold: Callable[[str, TreeEntry], bool] = lambda name, part: True
    uploaded_as: Callable[[str], Sequence[str]] = lambda name: ()


def children_or_itself(entry: TreeEntry) -> list[TreeEntry]:
    """Return what stands in a folder, or the entry itself if that can't be told."""
    with suppress(Refused):
        return entry.children()
    return [entry]


def folders_in(entry: TreeEntry) -> list[TreeEntry]:
    """Return the folders in a folder."""
    return [child for child in children_or_itself(entry) if child.kind is Kind.FOLDER]
