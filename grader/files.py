"""Files: written whole or not at all, locked against other runs, hashed, with safe names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
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
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("a+", encoding="utf-8") as file:
        try:
            _lock(file.fileno())
        except OSError:
            raise InUse(
                f"Another run of the grader is writing to {folder}. "
                "Wait until it is done, or give another folder with --out."
            ) from None
        yield


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
