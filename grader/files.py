"""Write files atomically; lock folders; back up, rename, read and hash files."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from grader.errors import CannotWrite, InUse, UsageError

_LOCK = ".lock"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, so that readers never see a part of the new content.

    Raises:
        CannotWrite: the file can't be written.
    """
    write_together({path: content})


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files atomically. If one of them can't be written, write none.

    Raises:
        CannotWrite: a file can't be written.
    """
    asides = {path: _temporary_path(path) for path in contents}
    try:
        for path, aside in asides.items():
            with writing(path):
                _require_replaceable(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                content = contents[path]
                aside.write_bytes(content.encode() if isinstance(content, str) else content)
        for path, aside in asides.items():
            with writing(path):
                aside.replace(path)
    finally:
        for aside in asides.values():
            with suppress(OSError):
                aside.unlink()


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{os.getpid()}.part")


def _require_replaceable(path: Path) -> None:
    """Raise an OSError if the path is a folder or a device, which must not be replaced."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """In a `with` block, turn an `OSError` into a `CannotWrite` that names this path.

    Raises:
        CannotWrite: the system reported an error.
    """
    try:
        yield
    except OSError as error:
        raise CannotWrite(error.errno, error.strerror or str(error), str(path)) from error


def require_writable(folder: Path, folders: Iterable[str], files: Iterable[str]) -> None:
    """Check that files can be written to a folder and its subfolders. Create nothing.

    Args:
        folder: the folder, which may not exist yet.
        folders: the names of subfolders.
        files: the names of files in the folder. Existing files will be replaced.

    Raises:
        UsageError: a path can't be written. The text contains the path and the reason.
    """
    for path in (folder, *(folder / name for name in folders)):
        existing = path
        try:
            while not os.path.lexists(existing) and existing != existing.parent:
                existing = existing.parent
            with tempfile.TemporaryFile(dir=existing) as file:
                file.write(b"0")
        except OSError as error:
            raise UsageError(_unwritable(existing, error.errno)) from None
    for path in (folder / name for name in files):
        if path.is_dir():
            raise UsageError(_unwritable(path, errno.EISDIR))


def _unwritable(path: Path, number: int | None) -> str:
    if number in _NO_ROOM:
        return no_room(path)
    why = f"{path}: {os.strerror(number or 0)}"
    return f"The reports can't be written ({why}), so nothing was run. Choose another --out."


_NO_ROOM = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def no_room(path: object = None) -> str:
    """Return the message for a full disk."""
    where = f" for {path}" if path else ""
    return f"There is no room left on the disk{where}. Make room and run the same command again."


def is_avoidable(error: OSError) -> bool:
    """Return whether the user can avoid the error by choosing another path or freeing space."""
    unreadable = isinstance(error, PermissionError) and bool(error.filename)
    return isinstance(error, CannotWrite) or unreadable or error.errno in _NO_ROOM


def os_error_sentence(error: OSError) -> str:
    """Return a sentence about the error, with advice if possible."""
    if error.errno in _NO_ROOM:
        return no_room(error.filename)
    if isinstance(error, CannotWrite):
        why = _obstacle(Path(error.filename)) or error.strerror
        return f"{error.filename} can't be written: {why}. Correct this, or choose another path."
    if is_avoidable(error):
        return f"{error.filename}: {error.strerror}. Correct this, or choose another path."
    return f"A file could not be read or written: {error}"


def _obstacle(path: Path) -> str:
    """Return the reason why no file can have this path, such as "it is a folder".

    Return an empty string if there is no such reason.
    """
    if os.path.isdir(path):
        return "it is a folder"
    if os.path.exists(path) and not os.path.isfile(path):
        return "it is not a regular file"
    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    return "" if os.path.isdir(above) else f"{above} is not a folder"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other runs of the grader, and create it if it does not exist.

    The system releases the lock when this process ends. A created folder is removed again if it is
    still empty.

    Raises:
        InUse: another run holds the lock.
        CannotWrite: the folder can't be written.
    """
    from filelock import FileLock, Timeout  # imported here, because students' commands use no locks

    lock = folder / _LOCK
    is_new = not folder.exists()
    with writing(lock):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            held = FileLock(lock, timeout=0).acquire()
        except Timeout:
            raise InUse(
                f"Another run of the grader is writing to {folder}. "
                "Wait until it is done, or give another folder with --out."
            ) from None
    with held:
        try:
            yield
        finally:
            if is_new and [*folder.iterdir()] == [lock]:
                with suppress(OSError):
                    lock.unlink()
                    folder.rmdir()


def set_aside(path: Path, why: str) -> Path:
    """Rename a file or folder to make room for a new file, and return its new path.

    Args:
        path: the file or folder.
        why: the suffix of the new name, such as "damaged".
    """
    endings = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    names = (f"{path.name}.{why}{ending}" for ending in endings)
    free = next(n for n in map(path.with_name, names) if not os.path.lexists(n))
    with writing(free):
        return path.rename(free)


def back_up(file: Path) -> Path:
    """Copy a file to the first unused name such as problem.py.bak-1, and return the new path."""
    content = file.read_bytes()
    for number in itertools.count(1):
        kept = file.with_name(f"{file.name}.bak-{number}")
        with writing(kept), suppress(FileExistsError):
            with kept.open("xb") as copy:  # x: never overwrite an existing file
                copy.write(content)
            return kept
    raise AssertionError("unreachable")


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        OSError: the file can't be read.
        ValueError: the file is not TOML. The text contains the reason.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8; save it as UTF-8") from None
    except ValueError:  # Python refuses to parse more than 4,300 digits
        raise ValueError("a number in it has thousands of digits") from None


def sha256_of(files: Mapping[str, Path]) -> str:
    """Return one hash of the names and contents of several files."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
