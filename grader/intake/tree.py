"""Represent files and folders, on disk or in archives, as one tree.

`opening` creates it, and downloads of platforms are rearranged from its entries. The
search for submissions uses names and kinds and reads the bytes of few files. No link is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

IS_LINK = "is a link; a link is not followed"
IS_TWICE = "is in the archive more than once; which one counts can't be known"


class Refused(Exception):  # noqa: N818  (it is an answer, not always an error)
    """An entry is not read. The text is the reason, as the rest of a sentence about the entry."""

    def sentence(self, subject: str) -> str:
        """Return the whole sentence about `subject`."""
        return f"{subject} {self}."


class BadArchive(Refused):
    """An archive is not read."""


class Kind(Enum):
    """The kind of an entry, without following a link."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    OTHER = "other"
    """A device, a pipe, or a member of an archive that is there twice or cannot be read."""


def _nothing() -> Iterable[TreeEntry]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class TreeEntry:
    """A file or a folder.

    Attributes:
        name: the last part of its path, unchanged.
        kind: folder, file, link or other.
        fault: why it is not read, as the rest of a sentence; empty if it is valid.
        is_packed: whether it is an archive, or in one.
        list_children: returns the entries of a folder, in any order.
        read_bytes: returns the bytes of a regular file; one more than requested if it is longer.
        nested: how many archives inside each other can be opened, beginning with this one.
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
        """Whether it is a file with the suffix of an archive."""
        return self.kind is Kind.FILE and bool(archive_suffix(self.name))

    @property
    def is_plain_file(self) -> bool:
        """Whether it is a file but no archive. Such an entry cannot be a submission."""
        return self.kind is Kind.FILE and not archive_suffix(self.name)

    def children(self) -> list[TreeEntry]:
        """Return the entries of the folder, sorted by name, without files of tools.

        Raises:
            Refused: it is not a folder, may not be read, or has too many entries.
        """
        if self.fault or self.kind is not Kind.FOLDER:
            raise self.refused("is not a folder")
        return sorted(self.list_children(), key=lambda entry: entry.name)

    def read(self, limit: int) -> bytes:
        """Return the bytes of a regular file with at most `limit` bytes.

        Raises:
            Refused: it is not such a file, or may not be read.
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
        """Return an exception with the reason why the entry was refused, or with this one."""
        return Refused(self.fault or reason)


def gathered(name: str, entries: Sequence[TreeEntry], fault: str = "") -> TreeEntry:
    """Return a virtual folder of entries from other folders."""
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
    """Return whether a file or folder was created by a tool. It is ignored completely."""
    return name in _NOISE or name.startswith("._")


def is_minor(name: str) -> bool:
    """Return whether a file belongs to a tool or to the course. It is never graded."""
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
