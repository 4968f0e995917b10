"""How rows are normalised, read off the rows: which variance, and what keeps it from being 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from grader.code.tensors import Tensor, torch
from grader.diagnose.estimate import TIGHT, Estimate
from grader.diagnose.numbers import numbers

_LENGTHS = (3, 5, 8)
_SIZES = (1e-3, 1e-2, 0.1, 1.0, 10.0)

_WAYS: Mapping[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "": (lambda by: by**2, lambda variance: variance),
    "it is added to the root of the variance, not to the variance": (lambda by: by, math.sqrt),
    "the row is divided by its variance, not by the root of that": (lambda by: by, lambda v: v),
}
"""Which powers of a row's divisor and of its variance differ by a factor and eps."""


def about_norm(
    norm: Callable[[Tensor, float | None], Tensor], eps: float, look: str = ""
) -> Iterable[Estimate]:
    """Yield what is certainly wrong with how rows are normalised.

    Args:
        norm: normalises rows (m, n), with this eps, or its own where that is None.
        eps: what should be its own.
        look: the nudge that goes with it.
    """
    found = [_way(partial(_with_eps, norm, each)) for each in (None, 0.01)]
    if None in found:
        return
    (way, is_sample, own), (other_way, _, given) = (each for each in found if each is not None)
    if way != other_way:
        return
    told = ["the squares are divided by n - 1, not by n"] * is_sample + [way] * bool(way)
    told += _told_eps(own, given, eps)
    if told:
        when = "; ".join(told)
        yield Estimate(f"estimated: {when}", when, look)


def _with_eps(
    norm: Callable[[Tensor, float | None], Tensor], eps: float | None, rows: Tensor
) -> Tensor:
    return norm(rows, eps)


def _told_eps(own: float, given: float, eps: float) -> list[str]:
    is_own, is_given = _near(own, eps), _near(given, 0.01)
    if is_own and is_given:
        return []
    if _near(own, given):
        return ["no eps is added" if abs(own) < 1e-10 else f"eps is always {own:.3g}"]
    if is_given:
        return [f"eps is {own:.3g} by default; it should be {eps:.3g}"]
    return [f"where eps = 0.01 is asked for it is {given:.3g}"]


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-10)


def _way(norm: Callable[[Tensor], Tensor]) -> tuple[str, bool, float] | None:
    """Return in which way rows are divided, whether by n - 1, and the eps; None if unclear."""
    rows = [_divided(norm, length) for length in _LENGTHS]
    known = [each for each in rows if each is not None]
    if len(known) < len(rows):
        return None
    for way, (of_divisor, of_variance) in _WAYS.items():
        lines = [[(of_variance(v), of_divisor(by)) for v, by in each] for each in known]
        for is_sample in (False, True):
            power = 1 if way != next(w for w in _WAYS if "root of the variance" in w) else 0.5
            factors = [(n / (n - 1) if is_sample else 1.0) ** power for n in _LENGTHS]
            eps = _added(lines, factors)
            if eps is not None:
                return way, is_sample, eps
    return None


def _added(
    lines: Sequence[Sequence[tuple[float, float]]], factors: Sequence[float]
) -> float | None:
    """Return what is added everywhere to x times the factor of its line; None if that differs."""
    found = [
        y - factor * x for line, factor in zip(lines, factors, strict=True) for x, y in line[:1]
    ]
    eps = found[0]
    fits = all(
        math.isclose(factor * x + eps, y, rel_tol=TIGHT, abs_tol=1e-12)
        for line, factor in zip(lines, factors, strict=True)
        for x, y in line
    )
    return eps if fits and eps > -1e-10 else None


def _divided(norm: Callable[[Tensor], Tensor], length: int) -> list[tuple[float, float]] | None:
    """Return the variance of some rows, and by what they were divided once they had mean 0."""
    row = numbers(length, start=0.4)
    row = row - row.mean()
    x = torch.stack([size * row for size in _SIZES])
    y = norm(x + 0.25).detach().double()
    if y.shape != x.shape or not y.isfinite().all():
        return None
    shares = (y * row).sum(-1) / (row * row).sum()
    if not torch.allclose(y, shares[:, None] * row, rtol=TIGHT, atol=TIGHT) or bool(
        (shares <= 0).any()
    ):
        return None
    by = torch.tensor(_SIZES, dtype=torch.float64) / shares
    variances = x.square().mean(-1)
    return list(zip(variances.tolist(), by.tolist(), strict=True))
