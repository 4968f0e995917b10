"""Call a student's function many times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import torch

from grader.code.tensors import Results
from grader.errors import Mismatch


def answers(
    function: Callable[..., Any],
    calls: Iterable[Sequence[Any] | Mapping[str, Any]],
    seeds: Iterable[int] | None = None,
) -> list[Any]:
    """Call a function once for each element of `calls` and return the results.

    Args:
        function: the student's function or module.
        calls: the arguments of each call, as a sequence or by name.
        seeds: the seed of torch's global generator for each call; by default it is not seeded.

    Raises:
        Mismatch: a call changed the result of an earlier call.
        Exception: a call raised it; no more calls are made.
    """
    results = Results()
    for arguments, seed in zip([*calls], repeat(None) if seeds is None else seeds, strict=False):
        if seed is not None:
            # torch.manual_seed takes 20 times as long, as it seeds other generators, too.
            torch.default_generator.manual_seed(seed)
        if isinstance(arguments, Mapping):
            results.add(function(**arguments))
        else:
            results.add(function(*arguments))
    if results.some_overwritten:
        name = getattr(function, "__name__", type(function).__name__)
        raise Mismatch(
            f"A call of {name} changed the result of an earlier call. "
            "Each call should make a new tensor."
        )
    return results.found


def seconds(run: Callable[[], object]) -> float:
    """Return the wall time of a call in seconds."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
