"""What has to be there, PyTorch first, and what may stand in its way: said at the start."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from grader.course import own_course
from grader.errors import CourseError, UsageError

_LOADED_LATE = ("numpy", "torch", "pytest", "jinja2", "msgspec", "filelock")
"""Packages that are loaded when a command is at work; a file of that name would end it there."""

_NO_TORCH = (
    "PyTorch is not installed. Run this once, in the course's folder:\n"
    "  uv pip install torch --torch-backend cpu\n"
    "That is its small build; with a GPU, leave out --torch-backend cpu."
)


def require_torch() -> None:
    """Check that PyTorch is there, and that it is what Python would load by that name.

    A course in NumPy does without it.

    Raises:
        UsageError: it isn't; the text says what to do.
    """
    require_own_packages()
    if find_spec("torch") is None and _wants_torch():
        raise UsageError(_NO_TORCH)


def _wants_torch() -> bool:
    try:
        return own_course().manifest.values == "torch"
    except (CourseError, UsageError):  # where there is no course, nobody wants any
        return False


def require_own_packages() -> None:
    """Make sure that no file of one's own stands in the way of a package.

    Raises:
        UsageError: one does.
    """
    for name in _LOADED_LATE:
        found = find_spec(name)
        installed = _installed(name)
        if found and found.origin and installed and Path(found.origin).resolve() != installed:
            raise UsageError(
                f"{found.origin} stands in the way of the package {name}: Python loads it in its "
                "place. Rename it, or take its folder out of PYTHONPATH (unset PYTHONPATH)."
            )


def _installed(name: str) -> Path | None:
    """Return the file that a package is loaded from; None when that isn't known."""
    try:
        path = Path(str(distribution(name).locate_file(f"{name}/__init__.py"))).resolve()
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None
