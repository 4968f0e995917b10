"""Calls a student's function many times, as a test about chance does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from grader.batch import Batched


def answers(
    function: Callable[..., Any], calls: Iterable[Sequence[Any]], seeds: Iterable[int] | None = None
) -> list[Any]:
    """Call a function with each of these arguments and return what came back, call by call.

    In grading one message brings many of the calls to the student's code. What comes back should
    not be tensors, since nobody looks whether a later call changes the result of one before.

    Args:
        function: the student's.
        calls: the arguments of each call.
        seeds: for each call, what torch's global generator is seeded with before; None to leave
            that as it is.

    Raises:
        Exception: what the first call raises that does; there are no calls after it.
    """
    each = [tuple(arguments) for arguments in calls]
    chosen = None if seeds is None else [*seeds]
    if isinstance(function, Batched):
        return function.answers(each, chosen)
    found = []
    for number, arguments in enumerate(each):
        if chosen is not None:
            # As torch.manual_seed, for this generator alone, and 20 times as fast.
            torch.default_generator.manual_seed(chosen[number])
        found.append(function(*arguments))
    return found
