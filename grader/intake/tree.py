"""One tree for folders and archives: a file or a folder, wherever it is.

Two readers make it, `disk` and `archives`; what a platform packed is put together anew from the
same entries. Whoever looks for submissions sees names and kinds, and asks for the bytes of the few
files that matter. No entry is ever a link that was followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

IS_LINK = "is a link; a link is not followed"
IS_TWICE = "is in the archive more than once; which one counts can't be known"

Wanted = Callable[[Sequence[str]], int]
"""Says of the parts of a member's name how many bytes it may have to be read; 0 for not at all."""


class Refused(Exception):  # noqa: N818  (it is an answer, not always an error)
    """Something is not read. The text says why, as the rest of a sentence that names it."""

    def sentence(self, subject: str) -> str:
        """Return the whole sentence about `subject`."""
        return f"{subject} {self}."


class BadArchive(Refused):
    """An archive, or something in it, is not read."""

    def sentence(self, subject: str) -> str:
        """Return the whole sentence about `subject`, which begins with `bad archive`."""
        return f"bad archive: {super().sentence(subject)}"


class Kind(Enum):
    """What an entry is, without following a link."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    OTHER = "other"
    """A device, a pipe, or what an archive can't mean seriously."""


def _nothing() -> Iterable[TreeEntry]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class TreeEntry:
    """A file or a folder.

    Attributes:
        name: the last part of its path, as it was handed in.
        kind: what it is.
        fault: why it is not read, as the rest of a sentence; empty when nothing is wrong with it.
        leads_out: the fault of a name in it, at any depth, that leads elsewhere.
        is_packed: whether it is an archive, or in one.
        list_children: gives what stands in a folder, in any order.
        read_bytes: gives the bytes of a regular file; one more than asked for if there are more.
        open_archive: gives the folder that an archive is; None where it may not be opened.
    """

    name: str
    kind: Kind
    fault: str = ""
    leads_out: str = ""
    is_packed: bool = False
    list_children: Callable[[], Iterable[TreeEntry]] = _nothing
    read_bytes: Callable[[int], bytes] | None = None
    open_archive: Callable[[Wanted], TreeEntry] | None = None

    @property
    def is_archive(self) -> bool:
        """Whether it is a file that is called as an archive of any kind."""
        return self.kind is Kind.FILE and bool(archive_suffix(self.name))

    @property
    def is_plain_file(self) -> bool:
        """Whether it is any other file: the one thing that can't be a submission."""
        return self.kind is Kind.FILE and not archive_suffix(self.name)

    def children(self) -> list[TreeEntry]:
        """Return what stands in the folder, by name, but for what tools leave behind.

        Raises:
            Refused: it is not a folder, may not be read, or holds too much.
        """
        if self.fault or self.kind is not Kind.FOLDER:
            raise self._refused("is not a folder")
        return sorted(self.list_children(), key=lambda entry: entry.name)

    def read(self, limit: int) -> bytes:
        """Return the bytes of a regular file that has at most `limit` of them.

        Raises:
            Refused: it is anything else, or may not be read.
        """
        if self.fault or self.read_bytes is None:
            raise self._refused("is not a regular file")
        content = self.read_bytes(limit)
        if len(content) > limit:
            raise self._refused(f"has more than {limit:,} bytes")
        return content

    def opened(self, wanted: Wanted) -> TreeEntry:
        """Return the folder that this is; if it is called as an archive, the one that it packs.

        Args:
            wanted: which members of an archive to read. The others are known by name only.

        Raises:
            BadArchive: it can't be read as an archive, or is too large.
        """
        if self.kind is Kind.FOLDER or not archive_suffix(self.name):
            return self
        if self.fault or self.open_archive is None:
            closed = "is an archive inside an archive, which is not opened; unpack the outer one"
            raise BadArchive(self.fault or closed)
        return self.open_archive(wanted)

    def renamed(self, name: str) -> TreeEntry:
        """Return the same by another name."""
        return replace(self, name=name)

    def _refused(self, reason: str) -> Refused:
        return (BadArchive if self.is_packed else Refused)(self.fault or reason)


def gathered(name: str, entries: Sequence[TreeEntry], fault: str = "") -> TreeEntry:
    """Return a folder that is nowhere: it is made of entries from elsewhere."""
    leads_out = next((entry.leads_out for entry in entries if entry.leads_out), "")
    return TreeEntry(name, Kind.FOLDER, fault, leads_out, list_children=lambda: entries)


# What names say


_NOISE = {
    *{"__MACOSX", "__pycache__", ".DS_Store", ".git", ".hg", ".svn", ".venv", "node_modules"},
    *{"venv", "site-packages", ".tox", ".nox", ".eggs"},
    *{".idea", ".vscode", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache"},
    *{"Thumbs.db", "desktop.ini"},
}
_MINOR = (".", "test_", "README", "explore.py", "probe.py", "conftest.py", "__init__.py")


def is_noise(name: str) -> bool:
    """Tell whether a file or folder is left behind by a tool. Then it isn't there for anybody."""
    return name in _NOISE or name.startswith("._")


def is_minor(name: str) -> bool:
    """Tell whether a file is a tool's or the course's own. Then it is never taken for work."""
    return name.startswith(_MINOR)


ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
"""How the names of archives end that are read."""

_OTHER_ARCHIVES = (".rar", ".7z", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".gz", ".bz2", ".xz")


def archive_suffix(name: str) -> str:
    """Return how the name of an archive ends, of any kind; empty when it is no archive's name."""
    suffixes = (*ARCHIVE_SUFFIXES, *_OTHER_ARCHIVES)
    return next((name[-len(s) :] for s in suffixes if name.lower().endswith(s)), "")


def without_suffix(name: str) -> str:
    """Return the name of an archive, or of anything else, without such an ending."""
    return name.removesuffix(archive_suffix(name))
