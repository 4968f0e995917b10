"""Files: written whole or not at all, locked against other runs, set aside, hashed."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from grader.errors import InUse, UsageError

_LOCK = ".lock"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never half of it."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        aside.write_bytes(data)
        aside.replace(path)
    except OSError as error:
        error.filename = str(path)  # some don't say which
        raise
    finally:
        aside.unlink(missing_ok=True)


def require_writable(folder: Path, folders: Iterable[str], files: Iterable[str]) -> None:
    """Make sure that a folder, and what will stand in it, can be written. Nothing is left there.

    Args:
        folder: it need not be there yet.
        folders: the names of folders in it.
        files: the names of files in it, which may be replaced.

    Raises:
        UsageError: something can't be written; the text says what and why.
    """
    for path in (folder, *(folder / name for name in folders)):
        place = path
        try:
            while not os.path.lexists(place) and place != place.parent:
                place = place.parent
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(b"0")
        except OSError as error:
            raise UsageError(_unwritable(place, error.errno)) from None
    for path in (folder / name for name in files):
        if path.is_dir():
            raise UsageError(_unwritable(path, errno.EISDIR))


def _unwritable(path: Path, number: int | None) -> str:
    if number in _NO_ROOM:
        return no_room(path)
    why = f"{path}: {os.strerror(number or 0)}"
    return f"The reports can't be written ({why}), so nothing was graded. Give another --out."


_NO_ROOM = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def no_room(path: object = None) -> str:
    """Return what to do when a disk is full."""
    where = f" for {path}" if path else ""
    return f"There is no room left on the disk{where}. Make room and run the same command again."


def told_os_error(error: OSError) -> str:
    """Return what went wrong with a file, and what to do where that is known."""
    if error.errno in _NO_ROOM:
        return f"{no_room(error.filename)} What is done is kept."
    return f"A file could not be read or written: {error}"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; the lock ends with this process, however that ends.

    Raises:
        InUse: another run has it.
        OSError: the folder can't be written.
    """
    from filelock import FileLock, Timeout  # here, for students' commands lock nothing

    folder.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(folder / _LOCK, timeout=0).acquire()
    except Timeout:
        raise InUse(
            f"Another run of the grader is writing to {folder}. "
            "Wait until it is done, or give another folder with --out."
        ) from None
    with held:
        yield


def set_aside(path: Path, why: str) -> Path:
    """Rename a file, or a folder that stands in its place, and return where it is now.

    Args:
        path: what is in the way of a file that will be written.
        why: what is put behind its name, such as "damaged".
    """
    endings = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    names = (f"{path.name}.{why}{ending}" for ending in endings)
    return path.rename(next(n for n in map(path.with_name, names) if not os.path.lexists(n)))


def sha256_of(files: Mapping[str, Path]) -> str:
    """Return one hash over files and the names that they go by."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
