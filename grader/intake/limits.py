"""How much is looked at and read, so that nobody's upload can stop the others: every limit.

A zip bomb, an endless list of names and a huge folder are refused by what stands here.
"""

from __future__ import annotations

import time
from typing import IO

from grader.intake.tree import BadArchive

MAX_SOURCE_BYTES = 1_000_000
"""The largest problem.py that is read. The reference solutions have about 3,000 bytes."""

MAX_ENTRIES = 50_000
"""The most entries of one folder, and the most members of one archive, that are looked at."""

MAX_ENTRIES_WITH_NOISE = 200_000
"""The same with what tools leave behind, such as the files of an environment in an archive."""

MAX_TOTAL_BYTES = 500_000_000
"""The most bytes that are read from one archive, packed and unpacked together."""

MAX_RATIO = 200
"""How many times its own size an archive may yield, once it has yielded `_SMALL` bytes."""

MAX_SECONDS = 10.0
"""How much processor time one archive may take. An honest one takes far less than a second, and
three if it holds all that it may: 500 MB in a tar.gz, or an environment with 50,000 files."""

MAX_DEPTH = 8
"""Members deeper than course/class/student/assignment/folder/problems/problem/file are not looked
at."""

MAX_NESTED_BYTES = 100_000_000
"""The largest archive inside an archive that is opened. It is held in memory while it is read."""

CHUNK = 1 << 16
"""How many bytes of a member are unpacked at once."""

_SMALL = 20_000_000


def too_many(entries: int, with_noise: int) -> bool:
    """Tell whether a folder or an archive holds too much.

    Args:
        entries: how many were found that are looked at.
        with_noise: how many were found in all.
    """
    return entries > MAX_ENTRIES or with_noise > MAX_ENTRIES_WITH_NOISE


def too_many_members() -> str:
    """Return why an archive is refused that holds too much."""
    return f"has more than {MAX_ENTRIES:,} members; leave out environments such as .venv"


class Budget:
    """What one archive may cost.

    Args:
        packed: the archive's own size.
    """

    def __init__(self, packed: int) -> None:
        self._most = min(MAX_TOTAL_BYTES, max(_SMALL, packed * MAX_RATIO))
        self.renew()

    def renew(self) -> None:
        """Begin anew, for what is one student's alone and must cost the others nothing."""
        self._until = time.thread_time() + MAX_SECONDS
        self._spent = 0

    def spend(self, count: int) -> None:
        """Count bytes that were read; raise BadArchive when there are too many or it takes long."""
        self._spent += count
        if self._spent > self._most:
            raise BadArchive(
                f"unpacks to more than {self._most:,} bytes; hand in the problems' folders alone"
            )
        self.spend_time()

    def spend_time(self) -> None:
        """Raise BadArchive when it has taken too long; to look at names takes time, too."""
        if time.thread_time() > self._until:
            raise BadArchive(f"takes more than {MAX_SECONDS:g} seconds to read")


class LimitedFile:
    """A file that counts what is read, and of which nobody can ask for much at once.

    Args:
        file: what to read from.
        budget: what may be read in all.
        largest: the most bytes of one read.
        list_mark: what stands before each entry of a list, of which one read may give only so many.
    """

    def __init__(
        self, file: IO[bytes], budget: Budget, largest: int, *, list_mark: bytes = b""
    ) -> None:
        self._file = file
        self._budget = budget
        self._largest = largest
        self._list_mark = list_mark

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes; raise BadArchive where that is more than is read at once."""
        most = self._largest + 1
        content = self._file.read(min(size, most) if size >= 0 else most)
        if len(content) == most:
            raise BadArchive("holds a name or a list that is too long")
        if self._list_mark and too_many(0, content.count(self._list_mark)):
            raise BadArchive(too_many_members())
        self._budget.spend(len(content))
        return content

    def seek(self, position: int, whence: int = 0) -> int:
        """Go elsewhere in the file."""
        return self._file.seek(position, whence)

    def tell(self) -> int:
        """Return where in the file the next read begins."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Tell that `seek` may be called."""
        return True

    def close(self) -> None:
        """Leave the file open; whoever opened it closes it."""
