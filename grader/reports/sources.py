"""Save the graded files of students in the folder of reports. Each file is named by its hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from grader.files import write_whole

SOURCES = "sources"
"""The name of the folder with the graded files."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Sources:
    """A folder of students' files. No file in it is ever run.

    Args:
        folder: the folder, which need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, sources: Iterable[bytes]) -> None:
        """Write the files that the folder does not contain yet.

        Raises:
            OSError: a file cannot be written.
        """
        for source in set(sources):
            sha256 = hashlib.sha256(source).hexdigest()
            if self.read(sha256) is None:
                write_whole(self._path(sha256), source)

    def read(self, sha256: str) -> bytes | None:
        """Return the content of the file with this hash, or None if it is missing or damaged."""
        if not _SHA256.fullmatch(sha256):
            return None
        try:
            source = self._path(sha256).read_bytes()
        except OSError:
            return None
        return source if hashlib.sha256(source).hexdigest() == sha256 else None

    def keep_only(self, wanted: Iterable[str]) -> None:
        """Remove the files whose hashes are not in `wanted`.

        Args:
            wanted: the hashes of the files to keep.
        """
        names = {f"{sha256}.py" for sha256 in wanted}
        for path in self._folder.glob("*.py"):
            if path.name not in names and _SHA256.fullmatch(path.stem):
                path.unlink()

    def _path(self, sha256: str) -> Path:
        return self._folder / f"{sha256}.py"
