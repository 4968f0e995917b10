"""The tree of an archive while it grows: each member stands where its name says, and only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO

from grader.intake import limits
from grader.intake.archives.names import split_name
from grader.intake.tree import IS_LINK, IS_TWICE, BadArchive, Kind, TreeEntry, Wanted, is_in_noise
from grader.text import quoted

_ROOT = ""

Below = dict[str, TreeEntry]
"""What stands in a folder, by name."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file or a folder as an archive lists it.

    Attributes:
        name: as it stands there.
        separated: the same with `/` between folders, whatever the archive has.
        kind: what the archive says that it is.
        open: opens a file's content; may raise Refused.
    """

    name: str
    separated: str
    kind: Kind
    open: Callable[[], IO[bytes]]


@dataclass(frozen=True, slots=True)
class Added:
    """A file of an archive that has its place in the tree, and is not read yet.

    Attributes:
        path: the names of the folders that it is in, and its own.
        around: what stands in the last of these folders.
    """

    path: Sequence[str]
    around: Below

    def set_content(self, content: bytes) -> None:
        """Keep its bytes."""
        self._put(replace(self.around[self.path[-1]], read_bytes=lambda limit: content))

    def set_opening(self, opening: Callable[[Wanted], TreeEntry]) -> None:
        """Let it be opened as an archive."""
        self._put(replace(self.around[self.path[-1]], open_archive=opening))

    def spoil(self, fault: str) -> None:
        """Have it refused, because something is wrong with it."""
        self._put(TreeEntry(self.path[-1], Kind.OTHER, fault, is_packed=True))

    def _put(self, entry: TreeEntry) -> None:
        self.around[self.path[-1]] = entry


class GrowingTree:
    """What is known so far of an archive.

    Args:
        name: the archive's.
    """

    def __init__(self, name: str) -> None:
        self._entries = self._with_noise = 0
        self._inside: dict[TreeEntry, Below] = {}
        self._top = {_ROOT: self._folder(name)}

    @property
    def root(self) -> TreeEntry:
        """The folder that the archive is.

        Raises:
            BadArchive: it has no members.
        """
        if not self._with_noise:
            raise BadArchive("holds nothing")
        return self._top[_ROOT]

    def add(self, member: Member) -> Added | None:
        """Put a member where it belongs; return it if it is a file, and the first there.

        Raises:
            BadArchive: there are too many of them.
        """
        path, wrong = split_name(member.separated)
        noise = is_in_noise(path)
        self._count(noise)
        if wrong and not noise:
            self._add_leading_out(path[: limits.MAX_DEPTH - 1], member.name, wrong)
        elif 0 < len(path) <= limits.MAX_DEPTH and not noise:
            return self._add_proper(path, member.kind)
        return None

    def _count(self, noise: bool) -> None:
        self._with_noise += 1
        self._entries += not noise
        if limits.too_many(self._entries, self._with_noise):
            raise BadArchive(limits.too_many_members())

    def _add_proper(self, path: Sequence[str], kind: Kind) -> Added | None:
        around = self._below(path if kind is Kind.FOLDER else path[:-1])
        if around is None or kind is Kind.FOLDER:
            return None
        name = path[-1]
        if name in around:
            around[name] = _twice(around[name])
            return None
        around[name] = TreeEntry(name, kind, IS_LINK if kind is Kind.LINK else "", is_packed=True)
        return Added(path, around) if kind is Kind.FILE else None

    def _add_leading_out(self, path: Sequence[str], name: str, wrong: str) -> None:
        """Put what has a name that leads out where that name still made sense.

        It is never read, and the folders around it are marked: none of them is read as one
        student's work.
        """
        fault = f"holds the name {quoted(name[:100])}, which {wrong}; pack the folder itself again"
        below = self._below(path)
        if below is None:
            return
        below[name] = TreeEntry(name, Kind.OTHER, fault, leads_out=fault, is_packed=True)
        around = self._top
        for part in (_ROOT, *path):
            folder = around[part]
            marked = replace(folder, leads_out=folder.leads_out or fault)
            self._inside[marked] = self._inside.pop(folder)
            around[part] = marked
            around = self._inside[marked]

    def _below(self, path: Sequence[str]) -> Below | None:
        """Return what stands in a folder, made if need be; None where something else stands."""
        below = self._top
        for name in (_ROOT, *path):
            folder = below.get(name)
            if folder is None:
                folder = below[name] = self._folder(name)
            if folder.kind is not Kind.FOLDER:
                below[name] = _twice(folder)
                return None
            below = self._inside[folder]
        return below

    def _folder(self, name: str) -> TreeEntry:
        below: Below = {}
        folder = TreeEntry(name, Kind.FOLDER, is_packed=True, list_children=below.values)
        self._inside[folder] = below
        return folder


def _twice(there: TreeEntry) -> TreeEntry:
    fault = there.leads_out or IS_TWICE
    return TreeEntry(there.name, Kind.OTHER, fault, there.leads_out, is_packed=True)
