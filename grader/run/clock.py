"""The clock for tests that must know how long code takes."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(run: Callable[[], object]) -> float:
    """Return how many seconds a call takes by the clock on the wall."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
