"""What is in a tar file, packed by gzip or not: its members in their order, read only forwards."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator
from functools import partial
from typing import IO, cast

from grader.intake import limits
from grader.intake.archives.members import Member
from grader.intake.tree import BadArchive, Kind

GZIP_START = b"\x1f\x8b"
"""The first bytes of a gzip file."""

DAMAGED = "is not a zip or tar archive, or is damaged or cut short; pack it and hand it in again"
"""Why an archive is refused whose bytes make no sense."""

_BLOCK = 512
_LONGEST_READ = 2 * limits.CHUNK


def tar_members(file: IO[bytes], budget: limits.Budget, *, is_packed: bool) -> Iterator[Member]:
    """Give the members of a tar file. A member can be opened until the next one is asked for."""
    tar = (_Unpacked if is_packed else _Forwards)(file, budget)
    with tarfile.open(fileobj=cast(IO[bytes], tar), mode="r:") as archive:
        for info in archive:
            yield Member(info.name, info.name, _kind(info), partial(_open, archive, info))
    if tar.last_read != bytes(_BLOCK):  # tarfile takes a broken header for the end
        raise BadArchive(DAMAGED)


class _Forwards(limits.LimitedFile):
    """A tar file. Going back in it is refused, as no reader of an honest one does that.

    Attributes:
        last_read: what was read last.
    """

    def __init__(self, file: IO[bytes], budget: limits.Budget) -> None:
        super().__init__(file, budget, _LONGEST_READ)
        self.last_read = b""

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes, and keep them as `last_read`."""
        self.last_read = super().read(size)
        return self.last_read

    def seek(self, position: int, whence: int = 0) -> int:
        """Go forwards, or stay."""
        if whence or position < self.tell():
            raise BadArchive(DAMAGED)
        return super().seek(position)


class _Unpacked(_Forwards):
    """What is in a gzip file. To go forwards in it means to unpack it, which is counted."""

    def __init__(self, file: IO[bytes], budget: limits.Budget) -> None:
        packed = limits.LimitedFile(file, budget, _LONGEST_READ)
        unpacked = gzip.GzipFile(fileobj=cast(IO[bytes], packed), mode="rb")
        super().__init__(cast(IO[bytes], unpacked), budget)

    def seek(self, position: int, whence: int = 0) -> int:
        """Go forwards by reading what is between."""
        if whence or position < self.tell():
            raise BadArchive(DAMAGED)
        while position > self.tell() and self.read(min(limits.CHUNK, position - self.tell())):
            pass
        return self.tell()


def _kind(info: tarfile.TarInfo) -> Kind:
    if info.isdir():
        return Kind.FOLDER
    if info.issym() or info.islnk():
        return Kind.LINK
    return Kind.FILE if info.isreg() and not info.issparse() else Kind.OTHER


def _open(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    member = archive.extractfile(info)
    assert member is not None  # it is for what isn't a file
    return member
