"""Read the file system as a tree, without following links, waiting or writing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from grader.intake import limits
from grader.intake.archives import OpenArchive, Wanted, require_readable_kind
from grader.intake.tree import IS_LINK, Kind, Refused, TreeEntry, is_noise

_NESTED = 2
"""A student's archive can be opened, and one inside it."""


@contextmanager
def opened_at(path: Path, wanted: Wanted) -> Iterator[TreeEntry]:
    """Yield the folder or archive at a path as a folder. An archive is open inside the context.

    If an archive can't be read, the entry has the reason.

    Args:
        path: a folder or a file.
        wanted: selects the members of an archive to read.
    """
    if path.is_dir():
        yield entry_at(path, Kind.FOLDER)
        return
    file: BinaryIO | None = None
    try:
        require_readable_kind(path.name)
        file = _open_regular(path)
        folder = OpenArchive(file, wanted, _NESTED).read(path.name)
    except Refused as refused:
        folder = TreeEntry(path.name, Kind.OTHER, str(refused), is_packed=True)
    try:
        yield folder
    finally:
        if file:
            file.close()


def entry_at(path: Path, kind: Kind) -> TreeEntry:
    """Return an entry of the file system. Its kind is found without following a link."""
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
                    raise Refused(f"holds more than {limits.MAX_ENTRIES:,} files and folders")
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
