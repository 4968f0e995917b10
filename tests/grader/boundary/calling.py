"""What a worker of these tests runs in place of a problem's tests: it calls functions of a file.

`conftest.CalledFile` is the other side. What a worker says here is unpickled, as no code that lies
about it is tested in this way.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor


def load(folder: str) -> Callable[[bytes, Any], Iterator[bytes]]:
    """Return what runs an order of calls."""
    return run_calls


def run_calls(order: bytes, loaded: Any) -> Iterator[bytes]:
    """Yield how loading the file ended, and then how each call did."""
    error = None if loaded.error is None else described(loaded.error)
    yield pickle.dumps((error, loaded.attempts))
    for name, arguments in pickle.loads(order):
        yield outcome(loaded, name, arguments)


def outcome(loaded: Any, name: str, arguments: tuple[Any, ...]) -> bytes:
    try:
        value = getattr(loaded.module, name)(*arguments)
        value = value.detach() if isinstance(value, Tensor) else value
        error = None
    except Exception as exception:
        value, error = None, described(exception)
    return pickle.dumps((value, error, loaded.called[:1]))


def described(error: BaseException) -> tuple[str, str]:
    return type(error).__name__, str(error)
