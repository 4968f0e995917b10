"""Open folders and archives as trees. Never follow links, wait for data, or write files.

An archive is read in one pass and in memory. Nothing is unpacked to disk. Archives in a zip file
can be opened, because downloads of learning platforms contain students' archives, which may contain
further archives. The number of nested levels is limited.
"""

from __future__ import annotations

import gzip
import io
import os
import posixpath
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, cast

from grader.intake import limits
from grader.intake.tree import (
    ARCHIVE_SUFFIXES,
    IS_LINK,
    IS_TWICE,
    BadArchive,
    Kind,
    Refused,
    TreeEntry,
    archive_suffix,
    is_noise,
)

_DAMAGED = "is not a complete zip or tar archive; pack it and submit it again"
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP_START = b"\x1f\x8b"

Wanted = Callable[[Sequence[str]], int]
"""A function that returns the maximum size in bytes at which a member of an archive is read.

Its argument contains the parts of the member's path. It returns 0 if the member is not read.
"""


@dataclass(frozen=True, slots=True)
class Member:
    """A file or a folder in an archive.

    Attributes:
        path: the parts of its path.
        kind: its kind according to the archive.
        open: a function that opens the content of a file. It may raise Refused.
    """

    path: tuple[str, ...]
    kind: Kind
    open: Callable[[], IO[bytes]]


_NESTED = 2
"""The number of nested levels of archives that can be opened."""


@contextmanager
def open_path(path: Path, wanted: Wanted) -> Iterator[TreeEntry]:
    """Yield the folder or archive at a path as a folder.

    An archive stays open until the context ends. If an archive can't be read, the yielded entry is
    not a folder, and its `fault` is the reason.

    Args:
        path: a folder or a file.
        wanted: returns the maximum size of a member of an archive. Larger members are not read.
    """
    if path.is_dir():
        yield entry_at(path, Kind.FOLDER)
        return
    with ExitStack() as stack:
        try:
            _require_readable_kind(path.name)
            file = stack.enter_context(_open_regular(path))
            folder = OpenArchive(file, wanted, _NESTED).read(path.name)
        except Refused as refused:
            folder = TreeEntry(path.name, Kind.OTHER, str(refused), is_packed=True)
        yield folder


def open_entry(entry: TreeEntry, wanted: Wanted) -> TreeEntry:
    """Return an archive as a folder. Return any other entry unchanged.

    Args:
        entry: the entry. An archive is read into memory.
        wanted: returns the maximum size of a member of an archive. Larger members are not read.

    Raises:
        Refused: the file is not a readable archive, or is too large.
    """
    if entry.kind is Kind.FOLDER or not archive_suffix(entry.name):
        return entry
    _require_readable_kind(entry.name)
    if not (entry.fault or entry.nested):
        raise BadArchive(
            "is an archive inside an archive, which is not opened; unpack the outer one"
        )
    content = entry.read(limits.MAX_NESTED_BYTES)
    return OpenArchive(io.BytesIO(content), wanted, entry.nested - 1).read(entry.name)


def _require_readable_kind(name: str) -> None:
    """Raise BadArchive unless the name has the suffix of a readable kind of archive."""
    if not name.lower().endswith(ARCHIVE_SUFFIXES):
        kinds = ", ".join(ARCHIVE_SUFFIXES)
        raise BadArchive(f"is a kind of archive that is not read; submit one of {kinds}")


class OpenArchive:
    """An archive that is being read, with the tree of the members that were read so far.

    Args:
        file: the bytes of the archive. The first bytes determine its format.
        wanted: returns the maximum size at which a member is read. If it returns 0, only the name
            of the member is kept.
        nested: the number of levels of archives inside this archive that can be opened. They can be
            opened only while `file` is open, and only if this archive is a zip file.
    """

    def __init__(self, file: BinaryIO, wanted: Wanted, nested: int) -> None:
        self._file = file
        self._wanted = wanted
        self._nested = nested
        self._budget = limits.Budget()
        self._count = 0
        self._folders: dict[tuple[str, ...], dict[str, TreeEntry]] = {(): {}}

    def read(self, name: str) -> TreeEntry:
        """Return the archive as a folder of this name.

        Raises:
            BadArchive: the file is not a readable archive, or is too large.
        """
        try:
            for member in self._members():
                self._add(member)
                self._budget.spend()
        except BadArchive:
            raise
        except Exception as error:  # damaged bytes may raise any exception
            raise BadArchive(_DAMAGED) from error
        if not self._count:
            raise BadArchive("is empty")
        return self._folder(name, ())

    def _members(self) -> Iterable[Member]:
        self._file.seek(0)
        start = self._file.read(4)
        self._file.seek(0)
        if start in _ZIP_STARTS:
            return _zip_members(self._file, self._budget)
        self._nested = 0
        return _tar_members(self._file, self._budget, is_packed=start.startswith(_GZIP_START))

    # The tree of members

    def _add(self, member: Member) -> None:
        self._count += 1
        limits.require_few(self._count)
        if not 0 < len(member.path) <= limits.MAX_DEPTH or any(map(is_noise, member.path)):
            return
        *folder, name = member.path
        is_folder = member.kind is Kind.FOLDER
        around = self._below(member.path if is_folder else tuple(folder))
        if around is not None and not is_folder:
            around[name] = _twice(name) if name in around else self._entry(member)

    def _below(self, path: tuple[str, ...]) -> dict[str, TreeEntry] | None:
        """Return a dictionary from names to the entries of the folder at `path`.

        Folders on the path that are not in the tree yet are added. Return None if the archive
        contains a file with the path of one of these folders.
        """
        if path not in self._folders:
            name, around = path[-1], self._below(path[:-1])
            if around is None:
                return None
            if name in around:
                around[name] = _twice(name)
                return None
            self._folders[path] = {}
            around[name] = self._folder(name, path)
        return self._folders[path]

    def _folder(self, name: str, path: tuple[str, ...]) -> TreeEntry:
        children = self._folders[path].values
        return TreeEntry(name, Kind.FOLDER, is_packed=True, list_children=children)

    # The content of a member

    def _entry(self, member: Member) -> TreeEntry:
        """Return the entry of a member. If `wanted` returns a size, read the member's content.

        The content of a nested archive is read only when the archive is opened.
        """
        fault = IS_LINK if member.kind is Kind.LINK else ""
        entry = TreeEntry(member.path[-1], member.kind, fault, is_packed=True)
        if member.kind is not Kind.FILE:
            return entry
        if most := self._wanted(member.path):
            try:
                content = self._content(member, most)
            except BadArchive:
                raise
            except Refused as refused:
                return replace(entry, kind=Kind.OTHER, fault=str(refused))
            return replace(entry, read_bytes=lambda limit: content)
        if self._nested and archive_suffix(entry.name):
            read_later = partial(self._nested_content, member)
            return replace(entry, read_bytes=read_later, nested=self._nested)
        return entry

    def _nested_content(self, member: Member, most: int) -> bytes:
        self._budget.renew()
        return self._content(member, most)

    def _content(self, member: Member, most: int) -> bytes:
        content = bytearray()
        try:
            with member.open() as file:
                while chunk := file.read(limits.CHUNK):
                    self._budget.spend(len(chunk))
                    content += chunk
                    if len(content) > most:
                        raise Refused(f"has more than {most:,} bytes")
        except Refused:
            raise
        except Exception:  # other members of a zip file may be intact
            raise Refused("is damaged; pack it and submit it again") from None
        return bytes(content)


def _twice(name: str) -> TreeEntry:
    return TreeEntry(name, Kind.OTHER, IS_TWICE, is_packed=True)


def parts_of(name: str) -> tuple[str, ...]:
    """Split the path of a member in its archive at slashes and backslashes.

    As in a shell, `..` never leads out of the topmost folder.
    """
    path = re.sub(r"\A[A-Za-z]:", "", name).replace("\\", "/")
    return tuple(filter(None, posixpath.normpath(f"/{path}").split("/")))


# Zip files

_UTF_8 = 0x800  # the flag of a name in UTF-8; zipfile decodes other names as cp437
_LARGEST_LIST = 32_000_000  # in bytes; the whole list of members is read into memory


def _zip_members(file: IO[bytes], budget: limits.Budget) -> Iterable[Member]:
    """Return the members of a zip file. Their content can be read while the file is open."""
    limited = limits.LimitedFile(file, budget, _LARGEST_LIST)
    archive = zipfile.ZipFile(cast(IO[bytes], limited))  # LimitedFile.close does nothing
    return map(partial(_zip_member, archive), archive.infolist())


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    # Some programs, for example on macOS, write UTF-8 without the flag.
    name = info.filename
    if not info.flag_bits & _UTF_8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return Member(parts_of(name), _zip_kind(info), partial(_open, archive, info))


def _zip_kind(info: zipfile.ZipInfo) -> Kind:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.filename.endswith(("/", "\\")):
        return Kind.FOLDER
    if kind == stat.S_IFLNK:
        return Kind.LINK
    return Kind.FILE if kind in (0, stat.S_IFREG) else Kind.OTHER


def _open(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    if info.flag_bits & 1:
        raise Refused("is encrypted; pack it again without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(
            "uses a compression method that is not read; pack it with the usual method, deflate"
        )
    return archive.open(info)


# Tar files, packed by gzip or not

_LONGEST_READ = 2 * limits.CHUNK


def _tar_members(file: IO[bytes], budget: limits.Budget, *, is_packed: bool) -> Iterator[Member]:
    """Yield the members of a tar file. The caller must read a member before requesting the next."""
    tar = limits.LimitedFile(file, budget, _LONGEST_READ)
    if is_packed:
        unpacked = gzip.GzipFile(fileobj=cast(IO[bytes], tar), mode="rb")
        content = cast(IO[bytes], unpacked)
        tar = limits.LimitedFile(content, budget, _LONGEST_READ, seeks_by_reading=True)
    with tarfile.open(fileobj=cast(IO[bytes], tar), mode="r:") as archive:
        for info in archive:
            extract = cast(Callable[[], IO[bytes]], partial(archive.extractfile, info))
            yield Member(parts_of(info.name), _tar_kind(info), extract)
        tar.seek(archive.offset)
        if tar.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise BadArchive(_DAMAGED)  # tarfile treats a broken header as the end


def _tar_kind(info: tarfile.TarInfo) -> Kind:
    if info.isdir():
        return Kind.FOLDER
    if info.issym() or info.islnk():
        return Kind.LINK
    return Kind.FILE if info.isreg() and not info.issparse() else Kind.OTHER


# The file system


def entry_at(path: Path, kind: Kind) -> TreeEntry:
    """Return the entry for a path on disk. Links are not followed."""
    return TreeEntry(
        path.name,
        kind,
        fault=IS_LINK if kind is Kind.LINK else "",
        list_children=partial(_children, path),
        read_bytes=partial(_read, path),
        nested=_NESTED,
    )


def _children(path: Path) -> Iterable[TreeEntry]:
    kept = []
    try:
        with os.scandir(path) as entries:
            for count, entry in enumerate(entries, 1):
                if count > limits.MAX_ENTRIES:
                    raise Refused(f"contains more than {limits.MAX_ENTRIES:,} files and folders")
                if not is_noise(entry.name):
                    kept.append(entry_at(path / entry.name, _kind(entry)))
    except OSError as error:
        raise Refused(f"can't be read ({error.strerror})") from None
    return kept


def _kind(entry: os.DirEntry[str]) -> Kind:
    try:
        if entry.is_symlink():
            return Kind.LINK
        if entry.is_dir(follow_symlinks=False):
            return Kind.FOLDER
        return Kind.FILE if entry.is_file(follow_symlinks=False) else Kind.OTHER
    except OSError:
        return Kind.OTHER


def _read(path: Path, limit: int) -> bytes:
    try:
        with _open_regular(path) as file:
            return file.read(limit + 1)
    except OSError as error:
        raise Refused(f"can't be read ({error.strerror})") from None


def _open_regular(path: Path) -> BinaryIO:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if path.is_symlink():
            raise Refused(IS_LINK)
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise Refused(f"can't be opened ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused("is not a regular file")
    return os.fdopen(descriptor, "rb")
