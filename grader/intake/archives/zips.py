"""What is in a zip file: its members in their order, each opened only when it is wanted."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import IO, cast

from grader.intake import limits
from grader.intake.archives.members import Member
from grader.intake.tree import Kind, Refused

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip file, and of an empty one."""

_LISTED = b"PK\x01\x02"  # before each member in the list of them
_UTF_8 = 0x800  # says that a name is in UTF-8; else it is read as cp437
_LARGEST_LIST = 32_000_000  # it is read, and kept, as a whole


def zip_members(file: IO[bytes], budget: limits.Budget) -> Iterable[Member]:
    """Return the members of a zip file; they can be opened as long as that is open."""
    limited = limits.LimitedFile(file, budget, _LARGEST_LIST, list_mark=_LISTED)
    archive = zipfile.ZipFile(cast(IO[bytes], limited))  # closing it would close nothing
    return map(partial(_member, archive), archive.infolist())


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    # The name as it stands there: `filename` ends at a zero byte. What is made on Windows may have
    # backslashes between its folders.
    name = _as_written(info)
    return Member(name, name.replace("\\", "/"), _kind(info), partial(_open, archive, info))


def _as_written(info: zipfile.ZipInfo) -> str:
    """Return a member's name; some programs write UTF-8 and don't say so, as those of macOS."""
    name = info.orig_filename
    if not info.flag_bits & _UTF_8:
        with suppress(UnicodeError):
            return name.encode("cp437").decode("utf-8")
    return name


def _kind(info: zipfile.ZipInfo) -> Kind:
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
