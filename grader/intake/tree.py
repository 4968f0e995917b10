"""Represent files and folders as a tree, whether they are on disk or in an archive.

`opening` creates the tree, and `platforms` rearranges the entries of downloads. The search for
submissions mostly uses names and kinds of entries, and reads few files. No link is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

IS_LINK = "is a link, which is not followed"
IS_TWICE = "is in the archive more than once, so no version can be chosen"


class Refused(Exception):  # noqa: N818  (it is not always an error)
    """An entry can't be read.

    The message is the rest of a sentence that begins with the entry's name.
    """

    def sentence(self, subject: str) -> str:
        """Return a sentence that consists of `subject` and the message."""
        return f"{subject} {self}."


class BadArchive(Refused):
    """An archive can't be read."""


class Kind(Enum):
    """The kind of an entry. Links are not followed."""

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
        fault: the reason why the entry can't be read, as the rest of a sentence; otherwise empty.
        is_packed: whether the entry is an archive or is in an archive.
        list_children: a function that returns the entries of a folder, in any order.
        read_bytes: a function that takes a limit and returns the bytes of a regular file. If the
            file is longer than the limit, the result is longer than the limit too.
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
        """Return the entries of the folder, sorted by name. Files that tools create are left out.

        Raises:
            Refused: the entry is not a folder, can't be read, or has too many entries.
        """
        if self.fault or self.kind is not Kind.FOLDER:
            raise self.refused("is not a folder")
        return sorted(self.list_children(), key=lambda entry: entry.name)

    def read(self, limit: int) -> bytes:
        """Return the bytes of a regular file. The file may have at most `limit` bytes.

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
        """Return an exception with the message `fault`, or `reason` if `fault` is empty."""
        return Refused(self.fault or reason)


def virtual_folder(name: str, entries: Sequence[TreeEntry], fault: str = "") -> TreeEntry:
    """Return a virtual folder with these entries, which may be entries of different folders."""
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
    """Return whether a file or folder of this name was created by a tool and is ignored."""
    return name in _NOISE or name.startswith("._")


def is_minor(name: str) -> bool:
    """Return whether a file of this name belongs to a tool or to the course, and is not graded."""
    return name.startswith(_MINOR)


ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
"""The suffixes of archives that can be read."""

_OTHER_ARCHIVES = (".rar", ".7z", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".gz", ".bz2", ".xz")


def archive_suffix(name: str) -> str:
    """Return the suffix of an archive of any kind, or "" if the name has no such suffix."""
    suffixes = (*ARCHIVE_SUFFIXES, *_OTHER_ARCHIVES)
    return next((name[-len(s) :] for s in suffixes if name.lower().endswith(s)), "")


def without_suffix(name: str) -> str:
    """Return a name without the suffix of an archive. Return other names unchanged."""
    return name.removesuffix(archive_suffix(name))
