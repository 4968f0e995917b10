"""What code does, read off its own numbers: by what it multiplies, for whatever sizes.

A list of known faults names those in the list. An estimator asks the code at several sizes, and
says what it does there, even if nobody thought of it. It speaks only where one sentence fits all
sizes to many digits, and never of what is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from grader.code.tensors import torch

TIGHT = 1e-6
"""How near numbers must be, relatively, for an estimator to speak."""

_PARTS = (1, 2, 3, 4)
"""Exponents are whole numbers, halves, thirds or fourths; nobody writes others."""

_LARGEST = 4


@dataclass(frozen=True)
class Estimate:
    """What an estimator is certain of.

    Attributes:
        name: what it is called in tables, the same for the same fault in another part.
        when: ends the sentence "It looks as if ...".
        look: a nudge to what to look at; never the line of code.
        is_seen: whether it is read off the parts of a module, not off numbers.
    """

    name: str
    when: str
    look: str = ""
    is_seen: bool = False


Estimator = Callable[[], Iterable[Estimate]]
"""Asks the code, and returns what is certain of it; nothing where all is right, or unclear."""


@dataclass(frozen=True)
class PowerLaw:
    """A constant times powers of sizes.

    Attributes:
        constant: what all are multiplied by.
        exponents: by the name of the size; none of them is 0.
    """

    constant: float
    exponents: Mapping[str, Fraction]

    @property
    def complexity(self) -> int:
        """How many things it is made of."""
        return len(self.exponents) + (self.constant != 1)


def power_law(
    factors: Sequence[float], sizes: Sequence[Mapping[str, float]], names: Sequence[str]
) -> PowerLaw | None:
    """Return how factors come of sizes; None where that is not certain.

    Args:
        factors: one for each choice of sizes, above 0.
        sizes: the choices. There must be two more than names, at least, all independent.
        names: the sizes that may count.
    """
    if len(factors) < len(names) + 2 or not all(f > 0 and math.isfinite(f) for f in factors):
        return None
    logs = torch.tensor([[1.0, *(math.log(size[n]) for n in names)] for size in sizes]).double()
    wanted = torch.tensor([math.log(factor) for factor in factors], dtype=torch.float64)
    if int(torch.linalg.matrix_rank(logs)) < logs.shape[1]:
        return None
    solved = torch.linalg.lstsq(logs, wanted[:, None]).solution[:, 0].tolist()
    exponents = [_simple(exponent) for exponent in solved[1:]]
    if None in exponents:
        return None
    found = {n: e for n, e in zip(names, exponents, strict=True) if e}
    constant = _round(math.exp(solved[0]))
    law = PowerLaw(constant, found)
    fits = all(_is_near(value(law, s), f) for s, f in zip(sizes, factors, strict=True))
    return law if fits else None


def simplest_power_law(
    factors: Sequence[float],
    sizes: Sequence[Mapping[str, float]],
    choices: Iterable[Sequence[str]],
) -> PowerLaw | None:
    """Return the law made of the fewest things, of several choices of names; the first of a tie."""
    found = [law for names in choices if (law := power_law(factors, sizes, names))]
    return min(found, key=lambda law: law.complexity, default=None)


def value(law: PowerLaw, sizes: Mapping[str, float]) -> float:
    """Return the factor that a law gives for some sizes."""
    powers = (float(sizes[n]) ** float(e) for n, e in law.exponents.items())
    return float(law.constant * math.prod(powers))


def told_scale(law: PowerLaw) -> str:
    """Return what is done to numbers that a law multiplies, such as "divided by √n and by 2"."""
    below = [_power(name, -e) for name, e in law.exponents.items() if e < 0]
    above = [_power(name, e) for name, e in law.exponents.items() if e > 0]
    if law.constant < 1:
        below.append(_number(1 / law.constant))
    elif law.constant > 1:
        above.append(_number(law.constant))
    told = []
    if below:
        told.append("divided by " + " and by ".join(below))
    if above:
        told.append("multiplied by " + " and by ".join(above))
    return ", and ".join(told) if told else "left unscaled"


def _number(constant: float) -> str:
    """Return a number, as a root where it is that of a whole number and none itself."""
    square = round(constant**2)
    is_root = _is_near(constant**2, square) and not _is_near(constant, round(constant))
    return f"√{square}" if is_root else f"{constant:.5g}"


def _power(name: str, exponent: Fraction) -> str:
    whole, rest = divmod(exponent, 1)
    powers = {0: "", 1: name, 2: f"{name}²", 3: f"{name}³"}
    if rest == Fraction(1, 2) and whole < 2:
        return f"{powers[whole]} √{name}".strip()
    if rest == 0 and whole in powers:
        return powers[whole]
    return f"{name}^({exponent})"


def _simple(exponent: float) -> Fraction | None:
    """Return the simple fraction that a number is, as near as logarithms tell."""
    for denominator in _PARTS:
        fraction = Fraction(round(exponent * denominator), denominator)
        if abs(float(fraction) - exponent) < 10 * TIGHT and abs(fraction) <= _LARGEST:
            return fraction
    return None


def _round(constant: float) -> float:
    """Return the constant without its last digits, where it or its inverse is a whole number."""
    for rounded in (round(constant), 1 / max(1, round(1 / constant))):
        if rounded and _is_near(rounded, constant):
            return rounded
    return constant


def _is_near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TIGHT)
