"""Describe return values of student code by a few numbers that can be stored and compared."""

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
"""The maximum number of entries of a tensor that is described. Right results have fewer entries."""

_PROJECTIONS = 3


def attempt(function: Callable[[], object]) -> Answer:
    """Call student code and return a description of its return value or exception.

    Args:
        function: a function that calls student code and returns a tensor, an array, a number or a
            bool.

    Raises:
        DoesNotEnd: the time limit of the caller is exceeded.
    """
    try:
        with torch.enable_grad():  # an earlier call may have disabled gradients
            value = function()
    except (KeyboardInterrupt, DoesNotEnd):
        raise
    except BaseException as exception:  # student code may also raise SystemExit
        return Answer(instead=type(exception).__name__)
    return answer_of(value)


def answer_of(value: object) -> Answer:
    """Return a description of a return value of student code."""
    if isinstance(value, bool | int | float):
        value = numpy.array(float(value))
    if not isinstance(value, Tensor) and not is_array(value):
        return Answer(instead=RETURNED + type(value).__name__)
    is_form = isinstance(value, Tensor) and value.is_meta
    if is_form or math.prod(value.shape) > _MOST_ENTRIES:
        return Answer(instead=RETURNED + ("a-form" if is_form else "too-much"))
    if isinstance(value, numpy.ndarray) and value.dtype.kind not in "biuf":
        return Answer(instead=RETURNED + "no-numbers")
    flat = entries(value).astype(numpy.float64).ravel()
    is_finite = numpy.isfinite(flat)
    finite = numpy.where(is_finite, flat, 0.0)
    shape = "x".join(map(str, value.shape)) or "scalar"
    return Answer(shape, dtype_name(value), "", int((~is_finite).sum()), _numbers(finite))


@cache
def _sum_weights(length: int) -> list[Array]:
    """Return an array of fixed weights for each weighted sum. Each array has `length` entries."""
    places = numpy.arange(length, dtype=numpy.float64)
    return [numpy.sin((places + 1) * (1.3 + number) + number) for number in range(_PROJECTIONS)]


def _numbers(flat: Array) -> tuple[float, ...]:
    """Return the root mean square of an array's entries, followed by weighted sums of the entries.

    Nearly any two arrays differ in at least one of these numbers.
    """
    root = math.sqrt(max(len(flat), 1))
    with numpy.errstate(over="ignore"):
        sums = [(flat * weights).sum() / root for weights in _sum_weights(len(flat))]
        size = numpy.sqrt(numpy.square(flat).mean()) if len(flat) else 0.0
    return tuple(float(f"{float(number):.{DIGITS}g}") for number in (size, *sums))
