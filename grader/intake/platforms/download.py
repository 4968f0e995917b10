"""What a platform's file has to say, and what it is given to look at."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from grader.intake.layout import Layout, Work
from grader.intake.problem_names import Problems
from grader.intake.tree import Refused, TreeEntry

Upload = tuple[TreeEntry, re.Match[str]]
"""A file or folder of a download, and what its name says."""


@dataclass(frozen=True)
class Download:
    """A folder that may be a platform's download.

    Attributes:
        name: what it is called.
        children: what stands in it.
        beside: what stands beside it, if it is the only folder in what the instructor gave.
    """

    name: str
    children: list[TreeEntry]
    beside: list[TreeEntry] = field(default_factory=list)

    def fitting(self, match: Callable[[TreeEntry], re.Match[str] | None]) -> list[Upload]:
        """Return what a platform names so; nothing where that isn't more than half."""
        found = [(child, said) for child in self.children if (said := match(child))]
        return found if len(found) * 2 > len(self.children) else []

    def layout(
        self,
        title: str,
        uploads: Iterable[Upload],
        who: Callable[[re.Match[str]], Hashable],
        work: Callable[[Sequence[Upload]], Work],
    ) -> Layout:
        """Return a work for each student, and what else there is.

        Args:
            title: what this is.
            uploads: what is somebody's.
            who: says whose.
            work: makes one of all that is one student's.
        """
        students: dict[Hashable, list[Upload]] = {}
        for upload in uploads:
            students.setdefault(who(upload[1]), []).append(upload)
        used = {child.name for own in students.values() for child, _ in own}
        layout = Layout(title, [work(own) for own in students.values()])
        return layout.with_others(child for child in self.children if child.name not in used)


@dataclass(frozen=True)
class Platform:
    """How one platform's downloads are recognised.

    Attributes:
        look: returns who handed in what, or None when a folder is not of its kind. It looks at
            names, reads nothing but the platform's list of students, and guesses nothing: what fits
            nobody is told in a sentence.
        may_hold: tells whether a folder of this name can be a download that this stands in. What
            stands beside something is looked at only then.
        lists: by the names of its lists of students, the most bytes that are read of one.
    """

    look: Callable[[Download, Problems], Layout | None]
    may_hold: Callable[[str, TreeEntry], bool]
    lists: Mapping[str, int] = field(default_factory=dict)


def first_match(patterns: Iterable[re.Pattern[str]], name: str) -> re.Match[str] | None:
    """Return what a whole name says by the first pattern that it fits; None if it fits none."""
    return next((match for pattern in patterns if (match := pattern.fullmatch(name))), None)


def children_or_itself(entry: TreeEntry) -> list[TreeEntry]:
    """Return what stands in a folder, or the entry itself if that can't be told."""
    with suppress(Refused):
        return entry.children()
    return [entry]
