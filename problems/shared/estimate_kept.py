"""Which entries of a row were kept and which dropped, told by their ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from grader.code.tensors import Tensor, torch
from grader.diagnose.estimate import Estimate


@dataclass(frozen=True)
class Kept:
    """A row of which some entries were kept.

    Attributes:
        row: the entries before, no two of them alike.
        kept: bool, True where an entry is kept.
        right: how many should be kept, the largest ones.
        is_all: whether all should be kept by a rule of its own.
        first: how many should be kept of the first row that was asked together with this one.
    """

    row: Tensor
    kept: Tensor
    right: int
    is_all: bool = False
    first: int = 0


_NUMBERS: dict[str, Callable[[Kept], int]] = {
    "one entry more than it should be is kept of each row": lambda k: k.right + 1,
    "one entry less than it should be is kept of each row": lambda k: k.right - 1,
    "one entry less than it should be is kept of each row, but one at least": (
        lambda k: max(1, k.right - 1)
    ),
    "all are kept": lambda k: len(k.row),
    "only the largest entry is kept, always": lambda k: 1,
    "none is kept": lambda k: 0,
    "where all should be kept, only the largest entry is": (lambda k: 1 if k.is_all else k.right),
    "of each row as many are kept as the first row needs": lambda k: k.first,
}
"""How many entries are kept, and what that means. The ones that stay are the largest."""


def about_kept(rows: Sequence[Kept], look: str = "") -> Iterable[Estimate]:
    """Yield what is wrong about which entries are kept, if one rule tells it for all rows.

    Args:
        rows: what came of several rows.
        look: the nudge that goes with it.
    """
    if all(_is(each, largest=True, number=each.right) for each in rows):
        return
    fits = [when for when, number in _NUMBERS.items() if _all(rows, number, largest=True)]
    if not fits and _all(rows, lambda k: k.right, largest=False):
        fits = ["the smallest entries are kept, in place of the largest"]
    if not fits and all(
        torch.equal(each.kept, _of_largest(each, each.right) ^ True) for each in rows
    ):
        fits = ["what should be kept is dropped, and what should be dropped is kept"]
    if len(fits) == 1:
        yield Estimate(f"estimated: {fits[0]}", fits[0], look)


def _all(rows: Sequence[Kept], number: Callable[[Kept], int], *, largest: bool) -> bool:
    return all(_is(each, largest=largest, number=min(len(each.row), number(each))) for each in rows)


def _is(each: Kept, *, largest: bool, number: int) -> bool:
    """Tell whether just so many entries are kept, the largest or the smallest."""
    wanted = (
        _of_largest(each, number) if largest else _of_largest(each, len(each.row) - number) ^ True
    )
    return torch.equal(each.kept, wanted)


def _of_largest(each: Kept, number: int) -> Tensor:
    wanted = torch.zeros(len(each.row), dtype=torch.bool)
    wanted[each.row.argsort(descending=True)[: max(0, number)]] = True
    return wanted
