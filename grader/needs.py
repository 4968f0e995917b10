"""What has to be installed beside the course: PyTorch."""

from __future__ import annotations

from importlib.util import find_spec

from grader.errors import UsageError

_NO_TORCH = (
    "PyTorch is not installed. Run this once, in the course's folder:\n"
    "  uv pip install torch --torch-backend cpu\n"
    "That is its small build; with a GPU, leave out --torch-backend cpu."
)


def require_torch() -> None:
    """Check that PyTorch is there.

    Raises:
        UsageError: it isn't; the text says what to do.
    """
    if find_spec("torch") is None:
        raise UsageError(_NO_TORCH)
