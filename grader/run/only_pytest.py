"""Ends a test file of a problem that something else than pytest runs, with a sentence.

Test files import `grader.run`, and so this is run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

from grader.course import is_problem_folder, way_to


def require_pytest() -> None:
    """End this process if it is Python or unittest on a test file of a problem."""
    main = sys.modules["__main__"]
    is_unittest = main.__package__ == "unittest"
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_test_file(frame):
        frame = frame.f_back
    if frame is None or not (is_unittest or frame.f_globals is vars(main)):
        return
    folder = Path(frame.f_code.co_filename).resolve().parent
    run = f"{way_to(folder)}uv run pytest"
    print(f"pytest runs the tests of a problem. Run: {run}", file=sys.stderr)
    if is_unittest:
        sys.stderr.flush()
        os._exit(2)  # unittest catches SystemExit and prints where it came from
    raise SystemExit(2)


def _is_test_file(frame: FrameType) -> bool:
    path = Path(frame.f_code.co_filename)
    return path.name.startswith("test_") and is_problem_folder(path.resolve().parent)
