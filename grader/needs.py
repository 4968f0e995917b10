"""What has to be installed beside the course: PyTorch, in the build that fits the machine."""

from __future__ import annotations

from importlib.util import find_spec

from grader.errors import UsageError

_NO_TORCH = (
    "PyTorch is not installed yet. Run this once, in the course's folder:\n"
    "  uv pip install --torch-backend auto torch\n"
    "It takes the build that fits your machine. Without uv: pip install torch"
)


def require_torch() -> None:
    """Check that PyTorch is there.

    Raises:
        UsageError: it isn't; the text says what to do.
    """
    if find_spec("torch") is None:
        raise UsageError(_NO_TORCH)
