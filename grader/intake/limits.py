"""Limit the amount of data to read, so that one student's upload can't stop the run.

With these limits, zip bombs, huge folders and very long lists of names are rejected.
"""

from __future__ import annotations

import time
from typing import IO

from grader.intake.tree import BadArchive

MAX_SOURCE_BYTES = 1_000_000
"""The maximum size of a problem.py in bytes. The reference solutions have about 3,000 bytes."""

MAX_FILES = 50_000
"""The maximum number of files and folders in a submission. Files that tools create do not count."""

MAX_ENTRIES = 200_000
"""The maximum number of entries in one folder on disk, or in a whole archive.

The limit is high, because some archives contain a Python environment with thousands of files.
"""

MAX_TOTAL_BYTES = 500_000_000
"""The maximum number of bytes to read from one archive: packed plus unpacked bytes."""

MAX_SECONDS = 10.0
"""The maximum processor time for one archive in seconds.

Most archives take much less than a second. The largest allowed archives take three seconds, for
example a tar.gz of 500 MB or an environment with 50,000 files.
"""

MAX_DEPTH = 8
"""The maximum number of levels in a path.

For example, course/class/student/assignment/folder/problems/problem/file has eight levels.
"""

MAX_NESTED_BYTES = 100_000_000
"""The maximum size in bytes of a student's archive, which is read into memory."""

CHUNK = 1 << 16
"""The number of bytes to unpack at once."""

_LISTED = b"PK\x01\x02"  # precedes each member in the list of a zip file


def require_few(count: int) -> None:
    """Raise BadArchive if an archive has more members than allowed."""
    if count > MAX_ENTRIES:
        raise BadArchive(
            f"has more than {MAX_ENTRIES:,} members; leave out environments such as .venv"
        )


class Budget:
    """The number of bytes and the time that are left for reading one archive."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Reset the budget before a nested archive is read.

        Each student's archive has a budget of its own, so a large archive affects no other student.
        """
        self._until = time.thread_time() + MAX_SECONDS
        self._spent = 0

    def spend(self, count: int = 0) -> None:
        """Count bytes that were read. Raise BadArchive if too many bytes or seconds were used."""
        self._spent += count
        if self._spent > MAX_TOTAL_BYTES:
            most = f"{MAX_TOTAL_BYTES:,}"
            raise BadArchive(
                f"unpacks to more than {most} bytes; submit only the problems' folders"
            )
        if time.thread_time() > self._until:
            raise BadArchive(f"takes more than {MAX_SECONDS:g} seconds to read")


class LimitedFile:
    """A file that counts the bytes that are read, and limits the size of a single read.

    Args:
        file: the file to read.
        budget: the limits for the sum of all reads.
        largest: the maximum number of bytes in a single read.
        seeks_by_reading: whether skipped bytes count as read, as in a compressed file.
    """

    def __init__(
        self, file: IO[bytes], budget: Budget, largest: int, *, seeks_by_reading: bool = False
    ) -> None:
        self._file = file
        self._budget = budget
        self._largest = largest
        self._seeks_by_reading = seeks_by_reading

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes. Raise BadArchive if a single read returns too many bytes."""
        most = self._largest + 1
        content = self._file.read(min(size, most) if size >= 0 else most)
        if len(content) == most:
            raise BadArchive("contains a name or a list that is too long")
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
        """Return True, because `seek` can be called."""
        return True

    def close(self) -> None:
        """Do nothing, because the owner of the file closes it."""
