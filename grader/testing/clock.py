"""The clock for tests that must know how long code takes.

Such a test doesn't hang on answers alone: other code may answer the same, and take too long for
what quick code is asked. So whether the clock was read is known here, and tests read no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_reads = 0


def seconds(run: Callable[[], object]) -> float:
    """Return how many seconds a call takes by the clock on the wall."""
    global _reads
    _reads += 1
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def reads() -> int:
    """Return how often the clock was read since this process began."""
    return _reads
