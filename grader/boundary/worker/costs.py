"""What the student's code costs, for the requests that ask for it.

`code.cost` counts with modes, which code can leave for a moment (`_disable_current_modes`), and
which don't see inside of operators that are written in Python or call others. torch's own profiler
sees each operator that the dispatcher runs, below what Python code can switch off. It is asked for
products of matrices alone, and what counts is the larger of both numbers, so honest code costs the
same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

MOST = (1 << 62) - 1
"""What is reported where a count was stopped from within, and of all that is more."""

Shapes = list[list[int]]


def _of_convolution(shapes: Shapes) -> int:
    """Return what a convolution takes whose stride is 1; a profiler doesn't tell the stride."""
    (count, _, *sizes), kernel = shapes[:2]
    places = (max(1, size - of + 1) for size, of in zip(sizes, kernel[2:], strict=False))
    return 2 * count * math.prod(places) * math.prod(kernel)


_BY_NAME: dict[str, Callable[[Shapes], int]] = {
    "aten::convolution": _of_convolution,
    "aten::mm": lambda shapes: 2 * math.prod(shapes[0]) * shapes[1][-1],
    "aten::addmm": lambda shapes: 2 * math.prod(shapes[1]) * shapes[2][-1],
    "aten::mv": lambda shapes: 2 * math.prod(shapes[0]),
    "aten::addmv": lambda shapes: 2 * math.prod(shapes[1]),
    "aten::dot": lambda shapes: 2 * math.prod(shapes[0]),
}
_BY_NAME |= {"aten::bmm": _BY_NAME["aten::mm"], "aten::vdot": _BY_NAME["aten::dot"]}
_BY_NAME |= {f"aten::{name}": _BY_NAME["aten::addmm"] for name in ("addmm_", "baddbmm", "baddbmm_")}
_BY_NAME |= {"aten::addmv_": _BY_NAME["aten::addmv"]}

# Taken before a student's code can put anything else in their places.
_profiler: Any = getattr(torch._C, "_profiler", None)
_enable: Any = getattr(torch._C._autograd, "_enable_profiler_legacy", None)
_disable: Any = getattr(torch._C._autograd, "_disable_profiler_legacy", None)


@contextmanager
def recorded() -> Iterator[list[int]]:
    """Give a list that has one number after this context: the operations of all products in it.

    It is MOST if the profiler was stopped by somebody else, and 0 where torch has none.
    """
    found: list[int] = []
    started = _start()
    try:
        yield found
    finally:
        found.append(_operations() if started else 0)


def _start() -> bool:
    try:
        experimental = _profiler._ExperimentalConfig()
        flags = True, False, False, False, False  # the forms of tensors, and nothing else
        state = _profiler.ProfilerState.CPU
        _enable(_profiler.ProfilerConfig(state, *flags, experimental))
    except (AttributeError, RuntimeError, TypeError):
        return False  # another version of torch; or an open one, which is the student's
    return True


def _operations() -> int:
    try:
        threads = _disable()
    except RuntimeError:
        return MOST
    return sum(_of_thread(events) for events in threads)


def _of_thread(events: Any) -> int:
    """Return the operations of products that hold no other ones; modes call each once more."""
    total, open_ones = 0, []
    for event in events:
        if event.kind() == "push":
            open_ones.append([event, False])
        elif event.kind() == "pop" and open_ones:
            begun, holds_products = open_ones.pop()
            formula = _BY_NAME.get(begun.name())
            if formula is not None and not holds_products:
                total += _told(formula, begun.shapes())
            if open_ones and (holds_products or formula is not None):
                open_ones[-1][1] = True
    return total


def _told(formula: Callable[[Shapes], int], shapes: Shapes) -> int:
    try:
        return formula(shapes)
    except (IndexError, ValueError):  # of a tensor that has no plain shape, such as a nested one
        return 0
