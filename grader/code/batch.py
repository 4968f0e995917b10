"""Calls that are asked for together: of a function that runs elsewhere, in one message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from grader.code.returned import Results
from grader.errors import Mismatch


class Call(NamedTuple):
    """One call of a function.

    Attributes:
        args: its arguments.
        kwargs: those by name.
        upstream: that of a gradient which is likely to be asked for later; None for none.
    """

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012  (nobody changes it)
    upstream: Tensor | None = None


class Batched:
    """What runs elsewhere: to ask for many calls at once is quicker than one by one."""

    def answers(self, calls: Sequence[Call], seeds: Sequence[int] | None = None) -> list[Any]:
        """Call it once for each of these and return what came back.

        Args:
            calls: some calls.
            seeds: for each call, what torch's global generator is seeded with before; None to leave
                that as it is.
        """
        raise NotImplementedError


def overwritten(name: str) -> Mismatch:
    """Return what to tell when a call of the function `name` changed an earlier result."""
    return Mismatch(
        f"When {name} was called, the result of an earlier call changed with it. "
        "Each call should make a new tensor."
    )


def together(
    function: Callable[..., Any] | Batched,
    calls: Sequence[Call],
    seeds: Sequence[int] | None = None,
) -> list[Any]:
    """Do what `Batched.answers` does, wherever the function runs."""
    if isinstance(function, Batched):
        return function.answers(calls, seeds)
    return one_by_one(function, calls, seeds)


def one_by_one(
    function: Callable[..., Any], calls: Sequence[Call], seeds: Sequence[int] | None = None
) -> list[Any]:
    """Do what `Batched.answers` does, call by call.

    Raises:
        Mismatch: a call changed what an earlier one had returned.
        Exception: what a call raises.
    """
    results = Results()
    for number, call in enumerate(calls):
        if seeds is not None:
            # As torch.manual_seed, for this generator alone, and 20 times as fast.
            torch.default_generator.manual_seed(seeds[number])
        results.add(function(*call.args, **call.kwargs))
    if results.some_overwritten:
        raise overwritten(getattr(function, "__name__", type(function).__name__))
    return results.found
