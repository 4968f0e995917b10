"""Where files come from: a folder or an archive, seen alike.

Whoever looks for submissions sees entries, named folders and files, and asks for the bytes of the
few that matter. An archive is gone through once, in memory: of its members only those that are
wanted are read, each with a cap, and nothing is ever unpacked to disk. No link is followed, no
name leads anywhere. An archive inside an archive is opened only when the outer one is what the
instructor gave, as learning platforms pack what students packed; never one inside that.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO, Protocol, cast

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
"""How the names of archives end that are read."""

MAX_ENTRIES = 50_000
"""The most entries of one folder, and the most members of one archive, that are looked at."""

MAX_TOTAL_BYTES = 500_000_000
"""The most bytes that are read from one archive, packed and unpacked together."""

MAX_RATIO = 200
"""How many times its own size an archive may yield, once it has yielded `_SMALL` bytes."""

MAX_SECONDS = 20.0
"""How long one archive may take. An honest one takes far less than a second."""

MAX_DEPTH = 8
"""Members deeper than course/class/student/assignment/folder/problems/problem/file are not looked
at."""

MAX_NESTED_BYTES = 100_000_000
"""The largest archive inside an archive that is opened. It is held in memory while it is read."""

_OTHER_ARCHIVES = (".rar", ".7z", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".gz", ".bz2", ".xz")
_SMALL = 20_000_000
_CHUNK = 1 << 16
_ZIP_DIRECTORY = 8_000_000
_TAR_BLOCK = 512
_LONGEST_NAME = 255
_IS_LINK = "is a link; a link is not followed"
_TWICE = "is in the archive more than once; which one counts can't be known"
_DAMAGED = "is not a zip or tar archive, or is damaged or cut short; pack it and hand it in again"

_NOISE = {
    *{"__MACOSX", "__pycache__", ".DS_Store", ".git", ".hg", ".svn", ".venv", "node_modules"},
    *{".idea", ".vscode", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache"},
    *{"Thumbs.db", "desktop.ini"},
}

Wanted = Callable[[list[str]], int]
"""Says of the parts of a member's name how many bytes it may have to be read; 0 for not at all."""


_Open = Callable[[], IO[bytes]]


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


class Entry(Protocol):
    """A file or a folder, on disk or in an archive."""

    @property
    def name(self) -> str:
        """The last part of its path, as it was handed in."""

    @property
    def kind(self) -> Kind:
        """What it is."""

    def children(self) -> list[Entry]:
        """Return what stands in the folder, by name, but for what tools leave behind.

        Raises:
            Refused: it is not a folder, may not be read, or holds too much.
        """

    def read(self, limit: int) -> bytes:
        """Return the bytes of a regular file that has at most `limit` of them.

        Raises:
            Refused: it is anything else, or may not be read.
        """

    def unpacked(self, wanted: Wanted) -> Entry:
        """Return the folder that this archive is.

        Args:
            wanted: which members to read. The others are known by name only.

        Raises:
            BadArchive: it can't be read as an archive, or is too large.
        """

    def check_names(self) -> None:
        """Make sure that no name in it leads elsewhere.

        Raises:
            BadArchive: one does.
        """


def archive_suffix(name: str) -> str:
    """Return how the name of an archive ends, of any kind; empty when it is no archive's name."""
    suffixes = (*ARCHIVE_SUFFIXES, *_OTHER_ARCHIVES)
    return next((name[-len(s) :] for s in suffixes if name.lower().endswith(s)), "")


# On disk


@dataclass(frozen=True)
class OnDisk:
    """An entry of the file system. What it is was found out without following a link."""

    path: Path
    kind: Kind

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.name

    def children(self) -> list[Entry]:
        """Return what stands in the folder."""
        if self.kind is Kind.LINK:
            raise Refused(_IS_LINK)
        if self.kind is not Kind.FOLDER:
            raise Refused("is not a folder")
        try:
            with os.scandir(self.path) as found:
                entries = list(islice(found, MAX_ENTRIES + 1))
        except OSError as error:
            raise Refused(f"can't be read ({error.strerror})") from None
        if len(entries) > MAX_ENTRIES:
            raise Refused(f"holds more than {MAX_ENTRIES:,} files and folders")
        entries = sorted((e for e in entries if not _is_noise(e.name)), key=lambda e: e.name)
        return [OnDisk(self.path / entry.name, _kind_on_disk(entry)) for entry in entries]

    def read(self, limit: int) -> bytes:
        """Return the file's bytes, without following a link or waiting for anybody."""
        try:
            with _open_regular(self.path) as file:
                content = file.read(limit + 1)
        except OSError as error:
            raise Refused(f"can't be read ({error.strerror})") from None
        if len(content) > limit:
            raise Refused(f"has more than {limit:,} bytes")
        return content

    def unpacked(self, wanted: Wanted) -> Entry:
        """Return the folder that this archive is. What it holds decides how it is read."""
        with self._opened() as file:
            return _Unpacking(self.name, wanted, file).run()

    @contextmanager
    def held_open(self, wanted: Wanted) -> Iterator[Entry]:
        """Give the folder that this archive is; until the end, zip files in it can be unpacked."""
        with self._opened() as file:
            yield _Unpacking(self.name, wanted, file, with_nested=True).run()

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        _require_readable_kind(self.name)
        try:
            file = _open_regular(self.path)
        except Refused as refused:
            raise BadArchive(str(refused)) from None
        with file:
            yield file

    def check_names(self) -> None:
        """Do nothing: the names of a file system lead nowhere."""


def _require_readable_kind(name: str) -> None:
    if not name.lower().endswith(ARCHIVE_SUFFIXES):
        kinds = ", ".join(ARCHIVE_SUFFIXES)
        raise BadArchive(f"is of a kind that is not read; hand in one of {kinds}")


def _is_noise(name: str) -> bool:
    return name in _NOISE or name.startswith("._")


def _kind_on_disk(entry: os.DirEntry[str]) -> Kind:
    try:
        if entry.is_symlink():
            return Kind.LINK
        if entry.is_dir(follow_symlinks=False):
            return Kind.FOLDER
        return Kind.FILE if entry.is_file(follow_symlinks=False) else Kind.OTHER
    except OSError:
        return Kind.OTHER


def _open_regular(path: Path) -> BinaryIO:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if path.is_symlink():
            raise Refused(_IS_LINK)
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise Refused(f"can't be opened ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused("is not a regular file")
    return os.fdopen(descriptor, "rb")


# Put together


@dataclass(frozen=True)
class Gathered:
    """A folder that is nowhere: it is made of entries from elsewhere.

    Attributes:
        name: what to call it.
        below: what stands in it.
        fault: why it can't be used, as the rest of a sentence; empty when nothing is wrong.
    """

    name: str
    below: tuple[Entry, ...] = ()
    fault: str = ""
    kind: Kind = Kind.FOLDER

    def children(self) -> list[Entry]:
        """Return what stands in the folder."""
        if self.fault:
            raise Refused(self.fault)
        return sorted(self.below, key=lambda entry: entry.name)

    def read(self, limit: int) -> bytes:
        """Refuse: it is a folder."""
        raise Refused("is not a regular file")

    def unpacked(self, wanted: Wanted) -> Entry:
        """Refuse: it is a folder."""
        raise BadArchive("is not an archive")

    def check_names(self) -> None:
        """Make sure that no name in it leads elsewhere."""
        for entry in self.below:
            entry.check_names()


@dataclass(frozen=True)
class Renamed:
    """An entry by another name."""

    entry: Entry
    name: str

    @property
    def kind(self) -> Kind:
        """What it is."""
        return self.entry.kind

    def children(self) -> list[Entry]:
        """Return what stands in the folder."""
        return self.entry.children()

    def read(self, limit: int) -> bytes:
        """Return the file's bytes."""
        return self.entry.read(limit)

    def unpacked(self, wanted: Wanted) -> Entry:
        """Return the folder that this archive is."""
        return self.entry.unpacked(wanted)

    def check_names(self) -> None:
        """Make sure that no name in it leads elsewhere."""
        self.entry.check_names()


# In an archive


@dataclass
class InArchive:
    """An entry of an archive, held in memory.

    Attributes:
        name: the last part of the member's name.
        kind: what it is.
        content: the bytes of a file that was wanted.
        fault: why it is not read; empty when nothing is wrong with it.
        leads_out: whether the fault is a name that leads elsewhere.
        below: what stands in a folder, by name.
        nested: reads it as an archive; None where archives inside archives are not opened.
    """

    name: str
    kind: Kind = Kind.FOLDER
    content: bytes | None = None
    fault: str = ""
    leads_out: bool = False
    below: dict[str, InArchive] = field(default_factory=dict)
    nested: Callable[[Wanted], InArchive] | None = None

    def children(self) -> list[Entry]:
        """Return what stands in the folder."""
        if self.fault or self.kind is not Kind.FOLDER:
            raise BadArchive(self.fault or "is not a folder")
        return [self.below[name] for name in sorted(self.below)]

    def read(self, limit: int) -> bytes:
        """Return the bytes that were read when the archive was gone through."""
        if self.fault or self.content is None:
            raise BadArchive(self.fault or "is not a regular file")
        if len(self.content) > limit:
            raise BadArchive(f"has more than {limit:,} bytes")
        return self.content

    def unpacked(self, wanted: Wanted) -> Entry:
        """Return the folder that this archive inside an archive is, where that may be opened."""
        if self.fault or self.nested is None:
            closed = "is an archive inside an archive, which is not opened; unpack the outer one"
            raise BadArchive(self.fault or closed)
        return self.nested(wanted)

    def check_names(self) -> None:
        """Make sure that no name below leads elsewhere."""
        if self.leads_out:
            raise BadArchive(self.fault)
        for entry in self.below.values():
            entry.check_names()

    def spoil(self, fault: str) -> None:
        """Take back what was known of this entry, because something is wrong with it."""
        self.kind, self.content, self.fault, self.nested = Kind.OTHER, None, fault, None
        self.below.clear()


class _Unpacking:
    """Goes through one archive once, with all its limits.

    Args:
        name: the archive's name.
        wanted: which members to read.
        file: the archive.
        with_nested: whether archives in a zip file can be opened, as long as `file` is open.
    """

    def __init__(
        self, name: str, wanted: Wanted, file: BinaryIO, *, with_nested: bool = False
    ) -> None:
        self._root = InArchive(name)
        self._wanted = wanted
        self._file = file
        self._with_nested = with_nested
        self._budget = _Budget(file.seek(0, os.SEEK_END))
        self._members = 0

    def run(self) -> InArchive:
        """Return the folder that the archive is; raise BadArchive if that can't be told."""
        try:
            self._file.seek(0)
            start = self._file.read(4)
            self._file.seek(0)
            if start in (b"PK\x03\x04", b"PK\x05\x06"):
                self._zip()
            else:
                self._tar(packed=start.startswith(b"\x1f\x8b"))
        except BadArchive:
            raise
        except Exception as error:  # there is no complete list of what broken bytes raise
            raise BadArchive(_DAMAGED) from error
        if not self._members:
            raise BadArchive("holds nothing")
        return self._root

    def _zip(self) -> None:
        limited = _Limited(self._file, self._budget, _ZIP_DIRECTORY)
        archive = zipfile.ZipFile(cast(IO[bytes], limited))  # closing it would close nothing
        for info in archive.infolist():
            open_member = partial(_open_zip, archive, info)
            # The name as it stands there: `filename` ends at a zero byte.
            entry = self._add(info.orig_filename, _kind_in_zip(info), open_member)
            if entry and self._with_nested and archive_suffix(entry.name):
                entry.nested = partial(self._unpack_nested, entry, open_member)

    def _tar(self, packed: bool) -> None:
        limited = _Limited(self._file, self._budget, _CHUNK * 2, forward_only=not packed)
        if packed:
            limited = _Unzipped(limited, self._budget)
        with tarfile.open(fileobj=cast(IO[bytes], limited), mode="r:") as archive:
            for info in archive:
                self._add(info.name, _kind_in_tar(info), partial(_open_tar, archive, info))
        if limited.last_read != bytes(_TAR_BLOCK):  # tarfile takes a broken header for the end
            raise BadArchive(_DAMAGED)

    def _add(self, name: str, kind: Kind, open_member: _Open) -> InArchive | None:
        """Put a member where it belongs, and read it if it is wanted; return a regular file."""
        self._members += 1
        if self._members > MAX_ENTRIES:
            raise BadArchive(
                f"has more than {MAX_ENTRIES:,} members; leave out environments such as .venv"
            )
        parts, wrong = _split(name)
        if any(_is_noise(part) for part in parts):
            return None
        if wrong:
            fault = f"holds the name {name[:100]!a}, which {wrong}; pack the folder itself again"
            odd = InArchive(name, Kind.OTHER, fault=fault, leads_out=True)
            self._place(parts[: MAX_DEPTH - 1], odd)
        elif 0 < len(parts) <= MAX_DEPTH:
            entry = InArchive(parts[-1], kind, fault=_IS_LINK if kind is Kind.LINK else "")
            if self._place(parts[:-1], entry) and kind is Kind.FILE:
                if most := self._wanted(parts):
                    self._read(entry, open_member, most)
                return entry
        return None

    def _place(self, parents: list[str], entry: InArchive) -> bool:
        """Put the entry where it belongs; return whether it is the first in its place."""
        folder = self._root
        for name in parents:
            folder = folder.below.setdefault(name, InArchive(name))
            if folder.kind is not Kind.FOLDER:
                folder.spoil(_TWICE)
                return False
        there = folder.below.setdefault(entry.name, entry)
        if there is not entry and not there.kind is entry.kind is Kind.FOLDER:
            there.spoil(there.fault if there.leads_out else _TWICE)
        return there is entry

    def _unpack_nested(self, entry: InArchive, open_member: _Open, wanted: Wanted) -> InArchive:
        """Read an archive in this one into memory, go through it, and forget it."""
        _require_readable_kind(entry.name)
        self._budget.renew()
        self._read(entry, open_member, MAX_NESTED_BYTES)
        if entry.content is None:
            raise BadArchive(entry.fault)
        content, entry.content = entry.content, None
        return _Unpacking(entry.name, wanted, io.BytesIO(content)).run()

    def _read(self, entry: InArchive, open_member: _Open, most: int) -> None:
        content = bytearray()
        try:
            with open_member() as member:
                while chunk := member.read(_CHUNK):
                    self._budget.spend(len(chunk))
                    content += chunk
                    if len(content) > most:
                        raise Refused(f"has more than {most:,} bytes")
            entry.content = bytes(content)
        except BadArchive:
            raise
        except Refused as refused:
            entry.spoil(str(refused))
        except Exception:  # in a zip file, the members beside it may be whole
            entry.spoil("is damaged; pack it and hand it in again")


def _split(name: str) -> tuple[list[str], str]:
    """Return the parts of a member's name up to the first that is wrong, and what is wrong."""
    if name.startswith("/") or re.match("[A-Za-z]:", name):
        return [], "is absolute"
    parts: list[str] = []
    for part in name.split("/"):
        if part == "..":
            return parts, "leads out of its folder"
        if "\\" in part or "\0" in part:
            return parts, "has a backslash" if "\\" in part else "has a zero byte"
        if len(part) > _LONGEST_NAME:
            return parts, "is too long"
        if part not in ("", "."):
            parts.append(part)
    return parts, ""


def _kind_in_zip(info: zipfile.ZipInfo) -> Kind:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.orig_filename.endswith("/"):
        return Kind.FOLDER
    if kind == stat.S_IFLNK:
        return Kind.LINK
    return Kind.FILE if kind in (0, stat.S_IFREG) else Kind.OTHER


def _kind_in_tar(info: tarfile.TarInfo) -> Kind:
    if info.isdir():
        return Kind.FOLDER
    if info.issym() or info.islnk():
        return Kind.LINK
    return Kind.FILE if info.isreg() and not info.issparse() else Kind.OTHER


def _open_zip(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    if info.flag_bits & 1:
        raise Refused("is encrypted; pack it again without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused("is packed in a way that is not read; pack it in the usual way, deflate")
    return archive.open(info)


def _open_tar(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    member = archive.extractfile(info)
    assert member is not None  # it is for what isn't a file
    return member


class _Budget:
    """What one archive may cost.

    Args:
        packed: the archive's own size.
    """

    def __init__(self, packed: int) -> None:
        self._most = min(MAX_TOTAL_BYTES, max(_SMALL, packed * MAX_RATIO))
        self.renew()

    def renew(self) -> None:
        """Begin anew, for what is one student's alone and must cost the others nothing."""
        self._until = time.monotonic() + MAX_SECONDS
        self._spent = 0

    def spend(self, count: int) -> None:
        """Count bytes that were read; raise BadArchive when there are too many or it takes long."""
        self._spent += count
        if self._spent > self._most:
            raise BadArchive(
                f"unpacks to more than {self._most:,} bytes; hand in the problems' folders alone"
            )
        if time.monotonic() > self._until:
            raise BadArchive(f"takes more than {MAX_SECONDS:g} seconds to read")


class _Limited:
    """A file that counts what is read, and of which nobody can ask for much at once.

    Attributes:
        last_read: what was read last.

    Args:
        file: what to read from.
        budget: what may be read in all.
        largest: the most bytes of one read.
        forward_only: whether to refuse to go back, as no reader of an honest tar file does.
    """

    def __init__(
        self, file: IO[bytes], budget: _Budget, largest: int, *, forward_only: bool = False
    ) -> None:
        self._file = file
        self._budget = budget
        self._largest = largest
        self._forward_only = forward_only
        self.last_read = b""

    def read(self, size: int = -1) -> bytes:
        most = self._largest + 1
        self.last_read = self._file.read(min(size, most) if size >= 0 else most)
        if len(self.last_read) == most:
            raise BadArchive("holds a name or a list that is too long")
        self._budget.spend(len(self.last_read))
        return self.last_read

    def seek(self, position: int, whence: int = 0) -> int:
        if self._forward_only and (whence or position < self.tell()):
            raise BadArchive(_DAMAGED)
        return self._file.seek(position, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Leave the file open; whoever opened it closes it."""


class _Unzipped(_Limited):
    """What is in a gzip file. To go forward in it means to unpack it, which is counted."""

    def __init__(self, file: _Limited, budget: _Budget) -> None:
        unzipped = gzip.GzipFile(fileobj=cast(IO[bytes], file), mode="rb")
        super().__init__(cast(IO[bytes], unzipped), budget, _CHUNK * 2)

    def seek(self, position: int, whence: int = 0) -> int:
        if whence or position < self.tell():
            raise BadArchive(_DAMAGED)
        while position > self.tell() and self.read(min(_CHUNK, position - self.tell())):
            pass
        return self.tell()
