"""Read the file system as a tree, without following links, waiting or writing."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from grader.intake import limits
from grader.intake.archives import read_archive, require_readable_kind
from grader.intake.tree import IS_LINK, BadArchive, Kind, Refused, TreeEntry, Wanted, is_noise


def entry_at(path: Path, kind: Kind) -> TreeEntry:
    """Return an entry of the file system. Its kind is found without following a link."""
    return TreeEntry(
        path.name,
        kind,
        fault=IS_LINK if kind is Kind.LINK else "",
        list_children=partial(_children, path),
        read_bytes=partial(_read, path),
        open_archive=partial(_open_archive, path),
    )


@contextmanager
def held_open(path: Path, wanted: Wanted) -> Iterator[TreeEntry]:
    """Yield an archive as a folder. Inside the context, archives in a zip file can be opened.

    If it is a class, these are the students', and each may hold another one.

    Raises:
        BadArchive: it can't be read as an archive, or is too large.
    """
    require_readable_kind(path.name)
    try:
        file = _open_regular(path)
    except Refused as refused:
        raise BadArchive(str(refused)) from None
    with file:
        yield read_archive(path.name, file, wanted, nested=2)


def _open_archive(path: Path, wanted: Wanted) -> TreeEntry:
    """Read a student's archive into memory and return it as a folder."""
    require_readable_kind(path.name)
    try:
        content = _read(path, limits.MAX_NESTED_BYTES)
    except Refused as refused:
        raise BadArchive(str(refused)) from None
    if len(content) > limits.MAX_NESTED_BYTES:
        raise BadArchive(f"has more than {limits.MAX_NESTED_BYTES:,} bytes")
    return read_archive(path.name, io.BytesIO(content), wanted, nested=1)


def _children(path: Path) -> Iterable[TreeEntry]:
    kept = []
    try:
        with os.scandir(path) as found:
            for with_noise, entry in enumerate(found, 1):
                if not is_noise(entry.name):
                    kept.append(entry_at(path / entry.name, _kind(entry)))
                if limits.too_many(len(kept), with_noise):
                    raise Refused(f"holds more than {limits.MAX_ENTRIES:,} files and folders")
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
