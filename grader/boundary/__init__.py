"""The boundary between tests and student code: each side in a process of its own.

    with Boundary() as boundary:
        problem = boundary.open(source, forbidden=("gelu",))
        problem.activation(x)

See docs/isolation.md for what it protects against, and what it doesn't; README.md beside this file
says by which means, how it works, and which side runs which files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grader.boundary.boundary import Boundary
    from grader.boundary.connection import WorkerFailure
    from grader.boundary.proxy.caller import RemoteProblem
    from grader.boundary.starting import BoundaryError

__all__ = ["Boundary", "BoundaryError", "RemoteProblem", "WorkerFailure"]

_PLACES = {
    "Boundary": "boundary",
    "BoundaryError": "starting",
    "RemoteProblem": "proxy.caller",
    "WorkerFailure": "connection",
}


def __getattr__(name: str) -> Any:
    # Only when asked for: a worker imports this package too, and must not load the trusted half.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
