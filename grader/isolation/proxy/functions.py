"""The student's functions as tests hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from grader.batch import Batched, Call
from grader.isolation.proxy.twin import Target

if TYPE_CHECKING:
    from grader.isolation.proxy.caller import Caller


class RemoteFunction(Batched):
    """A function, class or method of the student's.

    Args:
        caller: calls it.
        target: which one it is.
    """

    def __init__(self, caller: Caller, target: Target) -> None:
        self._caller = caller
        self._target = target
        self.__name__ = target.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it in the worker."""
        return self._caller.call(self._target, [Call(args, kwargs)])[0]

    def answers(self, calls: Sequence[Call], seeds: Sequence[int] | None = None) -> list[Any]:
        """Call it in the worker, with many calls in a message."""
        return self._caller.call(self._target, calls, seeds)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"a function at a distance has no attribute {name!r}")
        owner = self.__dict__["__name__"]
        raise TypeError(f"reading {owner}.{name} isn't supported; read it from what {owner} makes")
