"""What calls have returned, wherever they were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch._C import TensorBase

# Taken before a student's code can put anything else in their places.
_address = TensorBase.data_ptr
_writings = vars(TensorBase)["_version"].__get__


class Results:
    """What calls have returned, to notice when one of them writes over an earlier result."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.some_overwritten = False
        self._versions: dict[int, int] = {}

    def add(self, result: Any) -> None:
        """Add what a call returned.

        A tensor counts what was written into its memory. Two results in the same place are nothing
        bad, such as parts of one mask that is kept, as long as nothing was written between them.
        """
        self.found.append(result)
        if type(result) not in (Tensor, nn.Parameter):  # another may answer as it likes
            return
        try:
            place, written = _address(result), _writings(result)
        except Exception:  # it has no memory or no such count
            return
        if place and self._versions.setdefault(place, written) != written:
            self.some_overwritten = True


@dataclass(frozen=True)
class Earlier:
    """An argument of one of many calls: what an earlier one of them has returned, itself.

    Across the boundary what was returned comes as a copy. Handed to a later call it would be new
    memory, and it could not be seen that the code writes into what it has returned before.

    Attributes:
        call: the number of the earlier call.
        item: which of the things that it returned; None for all.
    """

    call: int
    item: int | None = None

    def among(self, found: Sequence[Any]) -> Any:
        """Return it, given what the calls before have returned."""
        returned = found[self.call]
        return returned if self.item is None else returned[self.item]


def with_earlier(
    args: Sequence[Any], kwargs: dict[str, Any], found: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments in which what earlier calls have returned stands in its place."""
    given = [each.among(found) if type(each) is Earlier else each for each in args]
    named = {n: each.among(found) if type(each) is Earlier else each for n, each in kwargs.items()}
    return given, named
