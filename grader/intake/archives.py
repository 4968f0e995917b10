"""Read an archive as a folder of the tree, in one pass and in memory. Nothing is unpacked to disk.

An archive in a zip file can be opened: learning platforms pack students' archives, and students
pack archives again. The caller that opens the outermost archive sets the depth.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
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
    Wanted,
    archive_suffix,
    is_noise,
)
from grader.text import quoted

_DAMAGED = "is not a zip or tar archive, or is damaged or cut short; pack it and hand it in again"
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP_START = b"\x1f\x8b"

Below = dict[str, TreeEntry]
"""The entries of a folder, by name."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file or a folder in the list of an archive.

    Attributes:
        name: its name in the archive, unchanged.
        path: the name with `/` between folders, also if the archive uses backslashes.
        kind: its kind according to the archive.
        open: opens a file's content; may raise Refused.
    """

    name: str
    path: str
    kind: Kind
    open: Callable[[], IO[bytes]]


def require_readable_kind(name: str) -> None:
    """Raise BadArchive unless an archive of this name is of a kind that is read."""
    if not name.lower().endswith(ARCHIVE_SUFFIXES):
        kinds = ", ".join(ARCHIVE_SUFFIXES)
        raise BadArchive(f"is of a kind that is not read; hand in one of {kinds}")


def read_archive(name: str, file: BinaryIO, wanted: Wanted, *, nested: int) -> TreeEntry:
    """Return an archive as a folder.

    Args:
        name: the name of the archive.
        file: its bytes; the first ones decide the format.
        wanted: selects the members to read. Of the others only the names are known.
        nested: how many levels of archives in a zip file can be opened, while `file` is open.

    Raises:
        BadArchive: the file is not a readable archive, or is too large.
    """
    return _OpenArchive(name, file, wanted, nested).run()


class _OpenArchive:
    """An archive while it is read, and the tree of the members read so far."""

    def __init__(self, name: str, file: BinaryIO, wanted: Wanted, nested: int) -> None:
        self._file = file
        self._wanted = wanted
        self._nested = nested
        self._budget = limits.Budget(file.seek(0, os.SEEK_END))
        self._entries = self._with_noise = 0
        self._inside: dict[TreeEntry, Below] = {}
        self._top = {"": self._folder(name)}

    def run(self) -> TreeEntry:
        """Return the archive as a folder."""
        try:
            for member in self._members():
                self._add(member)
                self._budget.spend_time()
        except BadArchive:
            raise
        except Exception as error:  # there is no complete list of what broken bytes raise
            raise BadArchive(_DAMAGED) from error
        if not self._with_noise:
            raise BadArchive("holds nothing")
        return self._top[""]

    def _members(self) -> Iterable[Member]:
        self._file.seek(0)
        start = self._file.read(4)
        self._file.seek(0)
        if start in _ZIP_STARTS:
            return _zip_members(self._file, self._budget)
        self._nested = 0
        return _tar_members(self._file, self._budget, is_packed=start.startswith(_GZIP_START))

    # The tree: each member is at the path of its name, and only once

    def _add(self, member: Member) -> None:
        path, wrong = split_name(member.path)
        noise = any(map(is_noise, path))
        self._with_noise += 1
        self._entries += not noise
        if limits.too_many(self._entries, self._with_noise):
            raise BadArchive(limits.too_many_members())
        if noise:
            return
        if wrong:
            self._add_leading_out(path[: limits.MAX_DEPTH - 1], member.name, wrong)
        elif 0 < len(path) <= limits.MAX_DEPTH:
            self._add_proper(path, member)

    def _add_proper(self, path: Sequence[str], member: Member) -> None:
        is_folder = member.kind is Kind.FOLDER
        around = self._below(path if is_folder else path[:-1])
        if around is None or is_folder:
            return
        name = path[-1]
        if name in around:
            around[name] = _twice(around[name])
            return
        fault = IS_LINK if member.kind is Kind.LINK else ""
        around[name] = TreeEntry(name, member.kind, fault, is_packed=True)
        if member.kind is Kind.FILE:
            around[name] = self._completed(around[name], path, member)

    def _completed(self, entry: TreeEntry, path: Sequence[str], member: Member) -> TreeEntry:
        """Return a wanted file with its bytes, or a nested archive with a function to open it."""
        if most := self._wanted(path):
            try:
                content = self._content(member, most)
            except BadArchive:
                raise
            except Refused as refused:
                return TreeEntry(entry.name, Kind.OTHER, str(refused), is_packed=True)
            return replace(entry, read_bytes=lambda limit: content)
        if self._nested and archive_suffix(entry.name):
            return replace(entry, open_archive=partial(self._open_nested, member, entry.name))
        return entry

    def _add_leading_out(self, path: Sequence[str], name: str, wrong: str) -> None:
        """Add a member with an invalid name to the last valid folder of its path.

        It is never read. All folders around it are marked, so that none is read as a submission.
        """
        fault = f"holds the name {quoted(name[:100])}, which {wrong}; pack the folder itself again"
        below = self._below(path)
        if below is None:
            return
        below[name] = TreeEntry(name, Kind.OTHER, fault, leads_out=fault, is_packed=True)
        around = self._top
        for part in ("", *path):
            folder = around[part]
            marked = replace(folder, leads_out=folder.leads_out or fault)
            self._inside[marked] = self._inside.pop(folder)
            around[part] = marked
            around = self._inside[marked]

    def _below(self, path: Sequence[str]) -> Below | None:
        """Return a folder's entries and create missing folders; None if the path has a file."""
        below = self._top
        for name in ("", *path):
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

    # The content of a member

    def _open_nested(self, member: Member, name: str, wanted: Wanted) -> TreeEntry:
        """Read a nested archive into memory and return it as a folder."""
        require_readable_kind(name)
        self._budget.renew()
        try:
            content = self._content(member, limits.MAX_NESTED_BYTES)
        except Refused as refused:
            raise BadArchive(str(refused)) from None
        return read_archive(name, io.BytesIO(content), wanted, nested=self._nested - 1)

    def _content(self, member: Member, most: int) -> bytes:
        content = bytearray()
        try:
            with member.open() as opened:
                while chunk := opened.read(limits.CHUNK):
                    self._budget.spend(len(chunk))
                    content += chunk
                    if len(content) > most:
                        raise Refused(f"has more than {most:,} bytes")
        except Refused:
            raise
        except Exception:  # other members of a zip file may be intact
            raise Refused("is damaged; pack it and hand it in again") from None
        return bytes(content)


def _twice(there: TreeEntry) -> TreeEntry:
    fault = there.leads_out or IS_TWICE
    return TreeEntry(there.name, Kind.OTHER, fault, there.leads_out, is_packed=True)


# Names

_LONGEST_NAME = 255
_MOST_MARKS = 30  # Unicode's safe limit: the time to sort marks grows with their number squared


def split_name(name: str) -> tuple[list[str], str]:
    """Return the parts of a member's name before the first invalid one, and why it is invalid."""
    if name.startswith("/") or re.match("[A-Za-z]:", name):
        return [], "is absolute"
    parts: list[str] = []
    for part in name.split("/"):
        if wrong := _wrong(part):
            return parts, wrong
        if part not in ("", "."):
            parts.append(part)
    return parts, ""


def _wrong(part: str) -> str:
    if part == "..":
        return "leads out of its folder"
    if "\\" in part or "\0" in part:
        return "has a backslash" if "\\" in part else "has a zero byte"
    if len(part) > _LONGEST_NAME:
        return "is too long"
    return f"has more than {_MOST_MARKS} marks on one letter" if _has_too_many(part) else ""


def _has_too_many(part: str) -> bool:
    """Return whether a name has so many marks in a row, such as accents, that sorting is slow."""
    if part.isascii() or len(part) <= _MOST_MARKS:
        return False
    row = 0
    for letter in part:
        row = row + 1 if unicodedata.combining(letter) else 0
        if row > _MOST_MARKS:
            return True
    return False


# Zip files

_LISTED = b"PK\x01\x02"  # before each member in the central directory
_UTF_8 = 0x800  # flag for a name in UTF-8; otherwise it is decoded as cp437
_LARGEST_LIST = 32_000_000  # the central directory is in memory as a whole


def _zip_members(file: IO[bytes], budget: limits.Budget) -> Iterable[Member]:
    """Return the members of a zip file. They can be opened while the file is open."""
    limited = limits.LimitedFile(file, budget, _LARGEST_LIST, list_mark=_LISTED)
    archive = zipfile.ZipFile(cast(IO[bytes], limited))  # LimitedFile.close does nothing
    return map(partial(_zip_member, archive), archive.infolist())


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    # `filename` ends at a zero byte; `orig_filename` is complete. Archives from Windows may have
    # backslashes between folders. Some programs, as on macOS, write UTF-8 without the flag.
    name = info.orig_filename
    if not info.flag_bits & _UTF_8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return Member(name, name.replace("\\", "/"), _zip_kind(info), partial(_open, archive, info))


def _zip_kind(info: zipfile.ZipInfo) -> Kind:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.orig_filename.endswith(("/", "\\")):
        return Kind.FOLDER
    if kind == stat.S_IFLNK:
        return Kind.LINK
    return Kind.FILE if kind in (0, stat.S_IFREG) else Kind.OTHER


def _open(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    if info.flag_bits & 1:
        raise Refused("is encrypted; pack it again without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused("is packed in a way that is not read; pack it in the usual way, deflate")
    return archive.open(info)


# Tar files, packed by gzip or not: read only forwards

_BLOCK = 512
_LONGEST_READ = 2 * limits.CHUNK


def _tar_members(file: IO[bytes], budget: limits.Budget, *, is_packed: bool) -> Iterator[Member]:
    """Yield the members of a tar file. Open a member before the next one is requested."""
    tar = (_Unpacked if is_packed else _Forwards)(file, budget)
    with tarfile.open(fileobj=cast(IO[bytes], tar), mode="r:") as archive:
        for info in archive:
            extract = cast(Callable[[], IO[bytes]], partial(archive.extractfile, info))
            yield Member(info.name, info.name, _tar_kind(info), extract)
    if tar.last_read != bytes(_BLOCK):  # tarfile treats a broken header as the end
        raise BadArchive(_DAMAGED)


def _tar_kind(info: tarfile.TarInfo) -> Kind:
    if info.isdir():
        return Kind.FOLDER
    if info.issym() or info.islnk():
        return Kind.LINK
    return Kind.FILE if info.isreg() and not info.issparse() else Kind.OTHER


class _Forwards(limits.LimitedFile):
    """A tar file that only seeks forwards. Reading a valid one never seeks backwards.

    Attributes:
        last_read: the bytes of the last read.
    """

    def __init__(self, file: IO[bytes], budget: limits.Budget) -> None:
        super().__init__(file, budget, _LONGEST_READ)
        self.last_read = b""

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes, and keep them as `last_read`."""
        self.last_read = super().read(size)
        return self.last_read

    def seek(self, position: int, whence: int = 0) -> int:
        """Seek forwards, or stay."""
        if whence or position < self.tell():
            raise BadArchive(_DAMAGED)
        return super().seek(position)


class _Unpacked(_Forwards):
    """The content of a gzip file. Seeking forwards unpacks it, and the bytes are counted."""

    def __init__(self, file: IO[bytes], budget: limits.Budget) -> None:
        packed = limits.LimitedFile(file, budget, _LONGEST_READ)
        unpacked = gzip.GzipFile(fileobj=cast(IO[bytes], packed), mode="rb")
        super().__init__(cast(IO[bytes], unpacked), budget)

    def seek(self, position: int, whence: int = 0) -> int:
        """Seek forwards by reading."""
        if whence or position < self.tell():
            raise BadArchive(_DAMAGED)
        while position > self.tell() and self.read(min(limits.CHUNK, position - self.tell())):
            pass
        return self.tell()
