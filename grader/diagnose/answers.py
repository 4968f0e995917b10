"""Convert return values of student code to small answers that can be stored and compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy
import torch
from torch import Tensor

from grader.code.tensors import Array, dtype_name, entries, is_array
from grader.code.time_limit import DoesNotEnd
from grader.diagnose.kept_answer import DIGITS, RETURNED, Answer, alike, same

__all__ = ["Answer", "alike", "answer_of", "attempt", "same"]

_MOST_ENTRIES = 4096
"""The maximum number of entries of a tensor in an answer. Right answers have fewer entries."""

_PROJECTIONS = 3


def attempt(function: Callable[[], object]) -> Answer:
    """Call student code and return its answer; an exception is an answer, too.

    Args:
        function: calls the student's code; returns a tensor, an array, a number or a bool.

    Raises:
        DoesNotEnd: the time limit of the caller is reached.
    """
    try:
        with torch.enable_grad():  # an earlier call may have switched them off
            value = function()
    except (KeyboardInterrupt, DoesNotEnd):
        raise
    except BaseException as exception:  # student code may raise SystemExit or worse
        return Answer(instead=type(exception).__name__)
    return answer_of(value)


def answer_of(value: object) -> Answer:
    """Convert a return value of student code to an answer."""
    if isinstance(value, bool | int | float):
        value = numpy.array(float(value))
    if not isinstance(value, Tensor) and not is_array(value):
        return Answer(instead=RETURNED + type(value).__name__)
    is_form = isinstance(value, Tensor) and value.is_meta
    if is_form or math.prod(value.shape) > _MOST_ENTRIES:
        return Answer(instead=RETURNED + ("a-form" if is_form else "too-much"))
    if isinstance(value, numpy.ndarray) and value.dtype.kind not in "biuf":
        return Answer(instead=RETURNED + "no-numbers")
    found = entries(value).astype(numpy.float64).ravel()
    finite = numpy.isfinite(found)
    kept = numpy.where(finite, found, 0.0)
    shape = "x".join(map(str, value.shape)) or "scalar"
    return Answer(shape, dtype_name(value), "", int((~finite).sum()), _numbers(kept))


@cache
def _waves(length: int) -> list[Array]:
    """Return the fixed weights of the sums over the entries."""
    places = numpy.arange(length, dtype=numpy.float64)
    return [numpy.sin((places + 1) * (1.3 + number) + number) for number in range(_PROJECTIONS)]


def _numbers(found: Array) -> tuple[float, ...]:
    """Return the root mean square of the entries and weighted sums.

    Nearly any two tensors differ in at least one of these numbers.
    """
    root = math.sqrt(max(len(found), 1))
    with numpy.errstate(over="ignore"):
        sums = [(found * wave).sum() / root for wave in _waves(len(found))]
        size = numpy.sqrt(numpy.square(found).mean()) if len(found) else 0.0
    return tuple(float(f"{float(number):.{DIGITS}g}") for number in (size, *sums))
