"""Limit how much is read, so that one student's upload cannot stop the run.

These limits refuse zip bombs, endless lists of names and huge folders.
"""

from __future__ import annotations

import time
from typing import IO

from grader.intake.tree import BadArchive

MAX_SOURCE_BYTES = 1_000_000
"""The largest problem.py that is read. The reference solutions have about 3,000 bytes."""

MAX_FILES = 50_000
"""The most files and folders of one submission, without those of tools."""

MAX_ENTRIES = 200_000
"""The most entries of one folder or archive, such as a class with environments in archives."""

MAX_TOTAL_BYTES = 500_000_000
"""The most bytes that are read from one archive, packed and unpacked together."""

MAX_SECONDS = 10.0
"""The most processor time for one archive. A usual one takes far less than a second; one at the
limits takes three: 500 MB in a tar.gz, or an environment with 50,000 files."""

MAX_DEPTH = 8
"""Members deeper than course/class/student/assignment/folder/problems/problem/file are ignored."""

MAX_NESTED_BYTES = 100_000_000
"""The largest archive of a student that is opened. It is held in memory while it is read."""

CHUNK = 1 << 16
"""How many bytes of a member are unpacked at once."""

_LISTED = b"PK\x01\x02"  # before each member in the list of a zip file


def require_few(count: int) -> None:
    """Raise BadArchive if a number of members is above the limit."""
    if count > MAX_ENTRIES:
        raise BadArchive(
            f"has more than {MAX_ENTRIES:,} members; leave out environments such as .venv"
        )


class Budget:
    """The bytes and the time that reading one archive may take."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Start a new budget, so that one student's nested archive affects no other."""
        self._until = time.thread_time() + MAX_SECONDS
        self._spent = 0

    def spend(self, count: int = 0) -> None:
        """Count bytes that were read; raise BadArchive above the limit of bytes or time."""
        self._spent += count
        if self._spent > MAX_TOTAL_BYTES:
            most = f"{MAX_TOTAL_BYTES:,}"
            raise BadArchive(
                f"unpacks to more than {most} bytes; hand in the problems' folders alone"
            )
        if time.thread_time() > self._until:
            raise BadArchive(f"takes more than {MAX_SECONDS:g} seconds to read")


class LimitedFile:
    """A file that counts the bytes read and limits the size of one read.

    Args:
        file: the file to read.
        budget: the limits for all reads.
        largest: the most bytes of one read.
        seeks_by_reading: whether bytes that are skipped count as read, as in a compressed file.
    """

    def __init__(
        self, file: IO[bytes], budget: Budget, largest: int, *, seeks_by_reading: bool = False
    ) -> None:
        self._file = file
        self._budget = budget
        self._largest = largest
        self._seeks_by_reading = seeks_by_reading

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes; raise BadArchive above the limit of one read."""
        most = self._largest + 1
        content = self._file.read(min(size, most) if size >= 0 else most)
        if len(content) == most:
            raise BadArchive("holds a name or a list that is too long")
        require_few(content.count(_LISTED))
        self._budget.spend(len(content))
        return content

    def seek(self, position: int, whence: int = 0) -> int:
        """Move to another position in the file."""
        if self._seeks_by_reading:
            self._budget.spend(abs(position - self.tell()))
        return self._file.seek(position, whence)

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Return True: `seek` may be called."""
        return True

    def close(self) -> None:
        """Leave the file open; its owner closes it."""
