"""What has to be there, PyTorch first, and what may stand in its way: said at the start."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from grader.course import own_course
from grader.errors import CourseError, UsageError

_LOADED_LATE = ("numpy", "torch", "pytest", "jinja2", "msgspec", "filelock")
"""Packages that are loaded when a command is at work; another of that name would end it there."""

_TORCHS_ADDRESSES = (
    "import re, torch; print(re.search(r'VmPeak:\\s+(\\d+)', open('/proc/self/status').read())[1])"
)
_START_SECONDS = 300.0

_NO_TORCH = (
    "PyTorch is not installed. Run this once, in the course's folder:\n"
    "  uv pip install torch --torch-backend cpu\n"
    "That is its small build; with a GPU, leave out --torch-backend cpu."
)

_LOADED = ("torch", "numpy")
"""PyTorch, and what it loads by a name that a student may give to a file."""


def require_torch() -> None:
    """Check that PyTorch is there, and that it is what Python would load by that name.

    A course in NumPy does without it.

    Raises:
        UsageError: it isn't; the text says what to do.
    """
    for name in _LOADED:
        found = find_spec(name)
        if found and found.origin and found.submodule_search_locations is None:
            raise UsageError(
                f"{found.origin} stands in the way of the package {name}: Python loads it in "
                f"place of {name}. Rename that file, and run this again."
            )
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
                f"{found.origin} stands in the way of the package {name}: Python would load it in "
                "its place. Rename it, or take its folder out of PYTHONPATH (unset PYTHONPATH)."
            )


def _installed(name: str) -> Path | None:
    """Return the file that a package is loaded from; None when that isn't known."""
    try:
        path = Path(str(distribution(name).locate_file(f"{name}/__init__.py"))).resolve()
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None


def require_address_space(memory_mb: int) -> None:
    """Make sure that `ulimit -v` leaves room for PyTorch and a student's process.

    Where there is no such limit, as nearly everywhere, nothing is tried.

    Args:
        memory_mb: how much a student's process may take beyond what PyTorch needs.

    Raises:
        UsageError: it doesn't.
    """
    limit = _address_limit_mb()
    if limit is None:
        return
    torch_mb = _torchs_mb()
    if torch_mb is None or torch_mb + memory_mb > limit:
        need = "more" if torch_mb is None else f"{torch_mb + memory_mb} MB"
        code = f" with a student's code (--memory {memory_mb})" if memory_mb else ""
        raise UsageError(
            f"`ulimit -v` lets a process have {limit} MB of addresses; PyTorch{code} needs {need}. "
            "Try again in a shell without that limit."
        )


def _address_limit_mb() -> int | None:
    if sys.platform != "linux":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit >> 20


def _torchs_mb() -> int | None:
    """Return how many MB of addresses PyTorch takes under the limit; None if it can't start."""
    command = [sys.executable, "-c", _TORCHS_ADDRESSES]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_START_SECONDS, check=True)
        return int(done.stdout) >> 10
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
