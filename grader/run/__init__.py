"""Run the course's tests, at home and in grading, and describe failures."""

import sys
from pathlib import Path

from grader.course import cd_to, is_problem_folder


def _require_pytest() -> None:
    """Exit with an error message if a problem's test file was started as a program."""
    path = Path(getattr(sys.modules["__main__"], "__file__", None) or "").resolve()
    if path.name.startswith("test_") and is_problem_folder(path.parent):
        run = f"{cd_to(path.parent)}uv run pytest"
        print(f"Test files are run by pytest. To test your work, run: {run}", file=sys.stderr)
        raise SystemExit(2)


_require_pytest()  # runs early, because every test file imports this package
