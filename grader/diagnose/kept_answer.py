"""What code answered to a question, as it is kept and compared, by graders and by reports.

How an answer is taken from code stands in `grader.diagnose.answers`. Here is no torch,
which reports do not load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_RELATIVE, _ABSOLUTE = 2e-4, 2e-5
"""How near two answers must be to be the same. Known faults differ from what is right by more."""

DIGITS = 6
"""Of each number that is kept."""

EDGE = "edge: "
"""How questions begin that are about what is extreme or beside the numbers."""

RETURNED = "returned-"
"""How the name begins of what came back and is no tensor of a size to keep."""


@dataclass(frozen=True)
class Answer:
    """An answer: a tensor by its shape and a few sums of its entries, or what came instead.

    Attributes:
        shape: the tensor's shape, as a text such as "2x3"; empty for what is no tensor.
        dtype: the tensor's dtype, or "" for what is no tensor.
        instead: the exception's or the other type's name; empty for a tensor.
        lost: how many entries are NaN or infinite.
        numbers: the root mean square of the finite entries, and sums of them with fixed weights.
    """

    shape: str = ""
    dtype: str = ""
    instead: str = ""
    lost: int = 0
    numbers: tuple[float, ...] = ()

    @property
    def is_value(self) -> bool:
        """Whether it is a tensor or a number."""
        return not self.instead

    @property
    def stops(self) -> bool:
        """Whether an exception came instead."""
        return bool(self.instead) and not self.instead.startswith(RETURNED)

    @property
    def is_lost(self) -> bool:
        """Whether it is a tensor without a finite number but 0, which tells nothing but that."""
        return bool(self.lost) and not any(self.numbers)

    def write(self) -> str:
        """Return it as one short text."""
        if self.instead:
            return f"!{self.instead}"
        numbers = " ".join(f"{number:.{DIGITS}g}" for number in self.numbers)
        return f"{self.dtype} {self.shape} {self.lost} {numbers}"

    @classmethod
    def read(cls, text: str) -> Answer:
        """Return the answer that `write` wrote."""
        if text.startswith("!"):
            return cls(instead=text[1:])
        dtype, shape, lost, *numbers = text.split(" ")
        return cls(shape, dtype, "", int(lost), tuple(map(float, numbers)))


def same(a: Answer, b: Answer, *, dtype: bool = True) -> bool:
    """Return whether two answers are the same but for rounding.

    Args:
        a: one answer.
        b: the other.
        dtype: whether the same numbers in another dtype are another answer.
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
    """Return whether two answers fail in the same manner, or are the same.

    It is for questions about what is extreme, where ways of writing one mistake differ in the very
    numbers: two exceptions are alike, and so are two tensors that both have lost entries. But to
    stop is not to return a thing of another type, such as None for a gradient that isn't there.
    """
    if a.instead or b.instead:
        return a.stops == b.stops and bool(a.instead and b.instead)
    if a.lost or b.lost:
        return bool(a.lost and b.lost) and a.shape == b.shape
    return same(a, b)
