"""Represent files and folders, on disk or in archives, as one tree.

`opening` creates the tree, and `platforms` rearranges its entries for downloads. The search for
submissions uses mostly names and kinds, and reads the bytes of few files. No link is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

IS_LINK = "is a link; a link is not followed"
IS_TWICE = "is in the archive more than once, so no version can be chosen"


class Refused(Exception):  # noqa: N818  (it is an answer, not always an error)
    """An entry can't be read. The text is the rest of a sentence that begins with the entry's
    name.
    """

    def sentence(self, subject: str) -> str:
        """Return the sentence that begins with `subject` and ends with the reason."""
        return f"{subject} {self}."


class BadArchive(Refused):
    """An archive can't be read."""


class Kind(Enum):
    """The kind of an entry, without following a link."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    OTHER = "other"
    """A device, a pipe, or a repeated or unreadable member of an archive."""


def _nothing() -> Iterable[TreeEntry]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class TreeEntry:
    """A file or a folder.

    Attributes:
        name: the last part of its path, unchanged.
        kind: folder, file, link or other.
        fault: the reason why the entry can't be read, as the rest of a sentence; empty if it can.
        is_packed: whether the entry is an archive or is in an archive.
        list_children: returns the entries of a folder, in any order.
        read_bytes: returns the bytes of a regular file. For a file longer than the limit, it
            returns one byte more than the limit.
        nested: the number of levels of archives that can be opened, including this entry.
    """

    name: str
    kind: Kind
    fault: str = ""
    is_packed: bool = False
    list_children: Callable[[], Iterable[TreeEntry]] = _nothing
    read_bytes: Callable[[int], bytes] | None = None
    nested: int = 0

    @property
    def is_archive(self) -> bool:
        """Whether the entry is a file with the suffix of an archive."""
        return self.kind is Kind.FILE and bool(archive_suffix(self.name))

    @property
    def is_plain_file(self) -> bool:
        """Whether the entry is a file but not an archive."""
        return self.kind is Kind.FILE and not archive_suffix(self.name)

    def children(self) -> list[TreeEntry]:
        """Return the entries of the folder, sorted by name, without files of tools.

        Raises:
            Refused: the entry is not a folder, can't be read, or has too many entries.
        """
        if self.fault or self.kind is not Kind.FOLDER:
            raise self.refused("is not a folder")
        return sorted(self.list_children(), key=lambda entry: entry.name)

    def read(self, limit: int) -> bytes:
        """Return the bytes of a regular file with at most `limit` bytes.

        Raises:
            Refused: the entry is not a regular file, is too long, or can't be read.
        """
        if self.fault or self.read_bytes is None:
            raise self.refused("is not a regular file")
        content = self.read_bytes(limit)
        if len(content) > limit:
            raise self.refused(f"has more than {limit:,} bytes")
        return content

    def renamed(self, name: str) -> TreeEntry:
        """Return the entry with another name."""
        return replace(self, name=name)

    def refused(self, reason: str = "") -> Refused:
        """Return the exception for this entry. Its text is `fault`, or `reason` if `fault` is
        empty.
        """
        return Refused(self.fault or reason)


def gathered(name: str, entries: Sequence[TreeEntry], fault: str = "") -> TreeEntry:
    """Return a virtual folder that contains these entries, which may come from other folders."""
    return TreeEntry(name, Kind.FOLDER, fault, list_children=lambda: entries)


# Names


_NOISE = {
    *{"__MACOSX", "__pycache__", ".DS_Store", ".git", ".hg", ".svn", ".venv", "node_modules"},
    *{"venv", "site-packages", ".tox", ".nox", ".eggs"},
    *{".idea", ".vscode", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache"},
    *{"Thumbs.db", "desktop.ini"},
}
_MINOR = (".", "test_", "README", "explore.py", "probe.py", "conftest.py", "__init__.py")


def is_noise(name: str) -> bool:
    """Return whether a tool creates files or folders with this name. They are ignored
    completely.
    """
    return name in _NOISE or name.startswith("._")


def is_minor(name: str) -> bool:
    """Return whether a file with this name belongs to a tool or to the course. It is never
    graded.
    """
    return name.startswith(_MINOR)


ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
"""The suffixes of archives that can be read."""

_OTHER_ARCHIVES = (".rar", ".7z", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".gz", ".bz2", ".xz")


def archive_suffix(name: str) -> str:
    """Return the suffix of an archive of any kind; empty if the name has none."""
    suffixes = (*ARCHIVE_SUFFIXES, *_OTHER_ARCHIVES)
    return next((name[-len(s) :] for s in suffixes if name.lower().endswith(s)), "")


def without_suffix(name: str) -> str:
    """Return a name without the suffix of an archive."""
    return name.removesuffix(archive_suffix(name))
