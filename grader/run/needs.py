"""What has to be installed beside the course, PyTorch, and what may stand in its way."""

from __future__ import annotations

from importlib.util import find_spec

from grader.errors import UsageError

_NO_TORCH = (
    "PyTorch is not installed. Run this once, in the course's folder:\n"
    "  uv pip install torch --torch-backend cpu\n"
    "That is its small build; with a GPU, leave out --torch-backend cpu."
)

_LOADED = ("torch", "numpy")
"""PyTorch, and what it loads by a name that a student may give to a file."""


def require_torch() -> None:
    """Check that PyTorch is there, and that it is what Python would load by that name.

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
    if find_spec("torch") is None:
        raise UsageError(_NO_TORCH)
