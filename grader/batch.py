"""Many calls of one function, asked for at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class Batched(ABC):
    """A function that runs elsewhere: to ask for many calls at once is quicker than one by one."""

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it once."""

    @abstractmethod
    def answers(
        self, calls: Sequence[tuple[Any, ...]], seeds: Sequence[int] | None = None
    ) -> list[Any]:
        """Call it with each of these arguments and return what came back.

        Args:
            calls: the arguments of each call.
            seeds: for each call, what torch's global generator is seeded with before; None to leave
                that as it is.
        """
