"""Detect files that Python would load instead of a package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from grader.errors import UsageError

_LOADED_LATE = ("numpy", "torch", "pytest", "jinja2", "filelock")
"""Packages that are loaded while a command runs; a file of that name would break it."""


def require_own_packages() -> None:
    """Check that no other file is loaded instead of an installed package.

    Raises:
        UsageError: there is such a file.
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
    """Return the file of an installed package; None if it is unknown."""
    try:
        path = Path(str(distribution(name).locate_file(f"{name}/__init__.py"))).resolve()
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None
