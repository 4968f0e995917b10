"""Makes the memory that a worker shares with the trusted side, which runs this."""

from __future__ import annotations

import mmap
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from grader.boundary.protocol.wire import SIZE, Memory

if sys.platform != "win32":
    import fcntl

_SEALS = 0x1 | 0x2 | 0x4  # no other seals, no smaller size, no larger one


@contextmanager
def shared_memory() -> Iterator[tuple[Memory, int | str]]:
    """Give memory to share with a worker, and by what that finds it while this context lasts.

    The worker can't make it smaller: who reads behind its end would be killed.
    """
    if sys.platform == "win32":
        name = f"grader-{secrets.token_hex(16)}"
        yield Memory(mmap.mmap(-1, SIZE, tagname=name)), name
        return
    with _anonymous_file() as file:
        file.truncate(SIZE)
        if sys.platform == "linux":
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
        yield Memory(mmap.mmap(file.fileno(), SIZE)), file.fileno()


def _anonymous_file() -> IO[bytes]:
    if sys.platform != "linux":
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (its context is the caller's)
    else:
        flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        file = os.fdopen(os.memfd_create("tensors", flags), "r+b")
    return file
