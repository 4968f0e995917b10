"""Packs what a students' copy holds and nobody should read by accident.

It is packed, not encrypted: whoever wants to can unpack it, and the students' pages say so.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from grader.errors import UsageError

PRACTICE = ".practice.bin"
"""In a problem's folder, what tests that a student wrote can be tried on."""


def packed(content: Any) -> bytes:
    """Return something that JSON can hold as one piece."""
    return zlib.compress(json.dumps(content).encode(), 9)


def unpacked(path: Path) -> Any:
    """Return what a file holds that was written by `packed`.

    Raises:
        FileNotFoundError: there is no such file.
        UsageError: it is damaged.
    """
    try:
        return json.loads(zlib.decompress(path.read_bytes()))
    except (zlib.error, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error
