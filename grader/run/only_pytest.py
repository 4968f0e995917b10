"""Ends a test file of a problem that something else than pytest runs, with a sentence.

Test files import `grader.run`. Where pytest runs them, or the grader, it is loaded already.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

from grader.course import is_problem_folder, way_to


def require_pytest() -> None:
    """End this process if a test file of a problem has started it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_test_file(path := Path(frame.f_code.co_filename)):
        frame = frame.f_back
    if frame is None:
        return
    folder = path.resolve().parent
    print(
        f"pytest runs the tests of a problem. Run: {way_to(folder)}uv run pytest", file=sys.stderr
    )
    if sys.modules["__main__"].__package__ == "unittest":
        sys.stderr.flush()
        os._exit(2)  # unittest catches SystemExit and prints where it came from
    raise SystemExit(2)


def _is_test_file(path: Path) -> bool:
    return path.name.startswith("test_") and is_problem_folder(path.resolve().parent)
