"""Represent and compare answers of student code to the questions of a probe.

`grader.diagnose.answers` creates the answers from return values. This module does not import torch,
because reports are written without torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_RELATIVE, _ABSOLUTE = 2e-4, 2e-5
"""The tolerances for equal answers. Known mistakes differ from the reference by more."""

DIGITS = 6
"""The number of significant digits of each stored number."""

EDGE = "edge: "
"""The prefix of edge questions, see `grader.diagnose.probe.Part`."""

RETURNED = "returned-"
"""The prefix of `Answer.instead` for a return value that is not a small tensor."""


@dataclass(frozen=True)
class Answer:
    """The description of a return value or an exception.

    A tensor is described by its shape, its dtype and a few sums of its entries.

    Attributes:
        shape: the tensor's shape as a text such as "2x3"; empty without a tensor.
        dtype: the tensor's dtype; empty without a tensor.
        instead: the name of an exception, or a description of a return value that is not a small
            tensor; empty for a tensor.
        lost: the number of entries of the tensor that are NaN or infinite.
        numbers: the root mean square of the finite entries, followed by weighted sums of them.
    """

    shape: str = ""
    dtype: str = ""
    instead: str = ""
    lost: int = 0
    numbers: tuple[float, ...] = ()

    @property
    def is_value(self) -> bool:
        """Whether the answer is a tensor or a number."""
        return not self.instead

    @property
    def stops(self) -> bool:
        """Whether the call raised an exception."""
        return bool(self.instead) and not self.instead.startswith(RETURNED)

    @property
    def is_lost(self) -> bool:
        """Whether some entries of the tensor are NaN or infinite, and all other entries are 0."""
        return bool(self.lost) and not any(self.numbers)

    def write(self) -> str:
        """Return the answer as a short text."""
        if self.instead:
            return f"!{self.instead}"
        numbers = " ".join(f"{number:.{DIGITS}g}" for number in self.numbers)
        return f"{self.dtype} {self.shape} {self.lost} {numbers}"

    @classmethod
    def read(cls, text: str) -> Answer:
        """Return the answer for which `write` returned `text`."""
        if text.startswith("!"):
            return cls(instead=text[1:])
        dtype, shape, lost, *numbers = text.split(" ")
        return cls(shape, dtype, "", int(lost), tuple(map(float, numbers)))


def same(a: Answer, b: Answer, *, dtype: bool = True) -> bool:
    """Return whether two answers are equal except for rounding.

    Args:
        a: an answer.
        b: another answer.
        dtype: whether equal numbers of different dtypes count as different.
    """
    if (a.shape, a.instead, a.lost) != (b.shape, b.instead, b.lost):
        return False
    if dtype and a.dtype != b.dtype:
        return False
    if len(a.numbers) != len(b.numbers):
        return False
    sizes = [abs(n) for n in (*a.numbers[:1], *b.numbers[:1])]
    if math.inf in sizes:  # squares of large entries overflow; the sums don't
        sizes = [abs(n) for n in (*a.numbers, *b.numbers) if math.isfinite(n)]
    near = _ABSOLUTE + _RELATIVE * max(sizes, default=0.0)
    return all(x == y or abs(x - y) <= near for x, y in zip(a.numbers, b.numbers, strict=True))


def alike(a: Answer, b: Answer) -> bool:
    """Return whether two answers are equal or fail in the same way.

    Use this comparison for edge questions, where versions of one mistake give different numbers.
    Any two exceptions are alike. Two tensors of the same shape are alike if both contain NaN or
    infinity. An exception and None are not alike. None is the answer for a missing gradient.
    """
    if a.instead or b.instead:
        return a.stops == b.stops and bool(a.instead and b.instead)
    if a.lost or b.lost:
        return bool(a.lost and b.lost) and a.shape == b.shape
    return same(a, b)
