"""An archive as a folder of the tree: gone through once, and of its members the wanted ones read.

An archive in a zip file can be opened: learning platforms pack what students packed, and students
pack what they had packed already. How deep that goes is said by whoever opens the outermost one.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import BinaryIO

from grader.intake import limits
from grader.intake.archives.members import Added, GrowingTree, Member
from grader.intake.archives.tars import DAMAGED, GZIP_START, tar_members
from grader.intake.archives.zips import ZIP_STARTS, zip_members
from grader.intake.tree import (
    ARCHIVE_SUFFIXES,
    BadArchive,
    Refused,
    TreeEntry,
    Wanted,
    archive_suffix,
    is_readable,
)


def require_readable_kind(name: str) -> None:
    """Raise BadArchive unless an archive of this name is of a kind that is read."""
    if not is_readable(name):
        kinds = ", ".join(ARCHIVE_SUFFIXES)
        raise BadArchive(f"is of a kind that is not read; hand in one of {kinds}")


Reopening = Callable[[Sequence[str], Wanted], TreeEntry]
"""Opens an archive in another one, which is closed by now, by the names on the way to it."""


def read_archive(
    name: str, file: BinaryIO, wanted: Wanted, *, nested: int, reopening: Reopening | None = None
) -> TreeEntry:
    """Return the folder that an archive is.

    Args:
        name: the archive's.
        file: its bytes, which decide how it is read.
        wanted: which members to read. The others are known by name only.
        nested: how many archives in each other can be opened in a zip file, while `file` is open.
        reopening: opens an archive in a zip file once `file` is closed.

    Raises:
        BadArchive: it can't be read as an archive, or is too large.
    """
    return _OpenArchive(name, file, wanted, nested, reopening).run()


class _OpenArchive:
    def __init__(
        self,
        name: str,
        file: BinaryIO,
        wanted: Wanted,
        nested: int,
        reopening: Reopening | None,
    ) -> None:
        self._file = file
        self._wanted = wanted
        self._nested = nested
        self._reopening = reopening
        self._budget = limits.Budget(file.seek(0, os.SEEK_END))
        self._tree = GrowingTree(name)

    def run(self) -> TreeEntry:
        try:
            for member in self._members():
                if added := self._tree.add(member):
                    self._complete(added, member)
                self._budget.spend_time()
        except BadArchive:
            raise
        except Exception as error:  # there is no complete list of what broken bytes raise
            raise BadArchive(DAMAGED) from error
        return self._tree.root

    def _members(self) -> Iterable[Member]:
        self._file.seek(0)
        start = self._file.read(4)
        self._file.seek(0)
        if start in ZIP_STARTS:
            return zip_members(self._file, self._budget)
        self._nested, self._reopening = 0, None
        packed = start.startswith(GZIP_START)
        return tar_members(self._file, self._budget, is_packed=packed)

    def _complete(self, added: Added, member: Member) -> None:
        """Read a file if it is wanted, and let an archive be opened where that is allowed."""
        name = added.path[-1]
        if most := self._wanted(added.path):
            try:
                added.set_content(self._content(member, most))
            except BadArchive:
                raise
            except Refused as refused:
                added.spoil(str(refused))
        elif self._nested and archive_suffix(name):
            added.set_opening(partial(self._open_nested, member, name))
        elif self._reopening and archive_suffix(name):
            added.set_opening(partial(self._reopening, added.path))

    def _open_nested(self, member: Member, name: str, wanted: Wanted) -> TreeEntry:
        """Read an archive in this one into memory and go through it."""
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
        except Exception:  # in a zip file, the members beside it may be whole
            raise Refused("is damaged; pack it and hand it in again") from None
        return bytes(content)
