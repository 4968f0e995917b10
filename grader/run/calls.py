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
        calls: for each call, a sequence of positional arguments or a mapping of keyword arguments.
        seeds: for each call, the seed of torch's global generator. By default, the generator is
            not seeded.

    Raises:
        Mismatch: a call changed the result of an earlier call.
        Exception: a call raised this exception. The remaining calls are skipped.
    """
    results = Results()
    for arguments, seed in zip([*calls], repeat(None) if seeds is None else seeds, strict=False):
        if seed is not None:
            # torch.manual_seed takes 20 times as long, because it also seeds other generators.
            torch.default_generator.manual_seed(seed)
        if isinstance(arguments, Mapping):
            results.add(function(**arguments))
        else:
            results.add(function(*arguments))
    if results.some_overwritten:
        name = getattr(function, "__name__", type(function).__name__)
        raise Mismatch(
            f"A call of {name} changed the result of an earlier call. "
            "Each call should return a new tensor."
        )
    return results.found


def seconds(run: Callable[[], object]) -> float:
    """Call `run` and return the elapsed time in seconds."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
