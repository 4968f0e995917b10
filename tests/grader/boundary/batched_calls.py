"""Calls a student's function many times, or once for a value and its gradient.

In grading a message brings the calls to the student's code, and each message takes longer than most
calls. So it pays to ask for all at once that a test wants to know anyway. What comes back is the
same as from calls one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor

from grader.code.batch import Batched, Call, together


def answers(
    function: Callable[..., Any] | Batched,
    calls: Iterable[Sequence[Any] | Mapping[str, Any]],
    seeds: Iterable[int] | None = None,
    upstreams: Iterable[Tensor | None] | None = None,
) -> list[Any]:
    """Call a function with each of these arguments and return what came back, call by call.

    Args:
        function: the student's, or one of the student's modules.
        calls: the arguments of each call; with their names, where they are given by name.
        seeds: for each call, what torch's global generator is seeded with before; None to leave
            that as it is.
        upstreams: for each call, what `gradients` will be asked for, None for nothing; see
            `answer`.

    Raises:
        Exception: what the first call raises that does; there are no calls after it.
    """
    given = [*calls]
    ahead: list[Tensor | None]
    ahead = [None] * len(given) if upstreams is None else [*upstreams]
    each = [_call(arguments, g) for arguments, g in zip(given, ahead, strict=True)]
    chosen = None if seeds is None else [*seeds]
    return together(function, each, chosen)


def answer(
    function: Callable[..., Any] | Batched, *args: Any, upstream: Tensor | None, **kwargs: Any
) -> Any:
    """Call a function whose gradient will be asked for; in grading both are then one message.

    Args:
        function: the student's, or one of the student's modules.
        args: its arguments.
        upstream: what the test will give to `gradients`, for a result of the same form. It changes
            nothing but how long that takes.
        kwargs: arguments by name.

    Raises:
        Exception: what the call raises.
    """
    if isinstance(function, Batched):
        return function.answers([Call(args, kwargs, upstream)])[0]
    return function(*args, **kwargs)


def _call(arguments: Sequence[Any] | Mapping[str, Any], upstream: Tensor | None) -> Call:
    if isinstance(arguments, Mapping):
        return Call((), dict(arguments), upstream)
    return Call(tuple(arguments), {}, upstream)
