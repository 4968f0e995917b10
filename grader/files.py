"""Files: written whole or not at all, locked against other runs, set aside, hashed."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from grader.errors import InUse

_LOCK = ".lock"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never half of it."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        aside.write_bytes(data)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


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
