"""Takes answers from code, in a form that is small, can be kept, and can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from grader.code.time_limit import DoesNotEnd
from grader.diagnose.kept_answer import DIGITS, RETURNED, Answer, alike, same

__all__ = ["Answer", "alike", "answer_of", "attempt", "same"]

_MOST_ENTRIES = 4096
"""What an answer may hold to be told apart by its numbers. Probes ask small questions."""

_PROJECTIONS = 3


def attempt(function: Callable[[], object]) -> Answer:
    """Ask; an exception is an answer too.

    Args:
        function: asks the student's code; it returns a tensor, a number or a bool.

    Raises:
        DoesNotEnd: it ran for longer than the caller allows.
    """
    try:
        with torch.enable_grad():  # whatever the question before has left
            value = function()
    except (KeyboardInterrupt, DoesNotEnd):
        raise
    except BaseException as exception:  # student code may raise SystemExit or worse
        return Answer(instead=type(exception).__name__)
    return answer_of(value)


def answer_of(value: object) -> Answer:
    """Return what is kept of a value."""
    if isinstance(value, bool | int | float):
        value = torch.tensor(float(value), dtype=torch.float64)
    if not isinstance(value, Tensor):
        return Answer(instead=RETURNED + type(value).__name__)
    if value.is_meta or value.numel() > _MOST_ENTRIES:
        return Answer(instead=RETURNED + ("a-form" if value.is_meta else "too-much"))
    entries = value.detach().double().flatten()
    finite = entries.isfinite()
    kept = torch.where(finite, entries, 0.0)
    shape = "x".join(map(str, value.shape)) or "scalar"
    dtype = str(value.dtype).removeprefix("torch.")
    return Answer(shape, dtype, "", int((~finite).sum()), _numbers(kept))


@cache
def _waves(length: int) -> list[Tensor]:
    """Return what entries are multiplied with before they are summed up."""
    places = torch.arange(length, dtype=torch.float64)
    return [torch.sin((places + 1) * (1.3 + number) + number) for number in range(_PROJECTIONS)]


def _numbers(entries: Tensor) -> tuple[float, ...]:
    """Return the size of the entries, and sums by which nearly any two sets of them differ."""
    root = math.sqrt(max(len(entries), 1))
    sums = [(entries * wave).sum() / root for wave in _waves(len(entries))]
    size = entries.square().mean().sqrt() if len(entries) else torch.zeros(())
    return tuple(float(f"{float(number):.{DIGITS}g}") for number in (size, *sums))
