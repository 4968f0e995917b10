"""Detect that the numbers of a wrong answer are the right numbers, but moved, shifted or rounded.

A relation to the right answer is reported only if it explains every number and no other relation
fits. The answer must contain enough distinct numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy

from grader.code.tensors import Array

_FEWEST = 4
"""The minimum number of distinct numbers. With fewer numbers, a relation may fit by chance."""

_MOST = 20_000
"""The maximum number of entries of an answer that is searched for relations."""

_MOST_SLICES = 64
"""The maximum number of rows or columns. It is small because all pairs of rows are compared."""

_KINDS = {-1: "column", -2: "row"}


def relations(got: Array, want: Array) -> list[str]:
    """Return a list with the sentence that relates `got` to `want`.

    The list is empty if no relation fits or several relations fit.

    Args:
        got: the wrong answer, in float64.
        want: the right answer, of the same shape.
    """
    if want.size > _MOST or not (numpy.isfinite(got).all() and numpy.isfinite(want).all()):
        return []
    if len(numpy.unique(want)) < _FEWEST or close(got, want):
        return []  # any relation would fit numbers that are so close
    detectors: list[Callable[[Array, Array], Iterator[str]]] = [
        _swapped,
        _moved,
        _offset,
        _rounded,
        _clipped,
        _dropped,
        _transformed,
    ]
    sentences = [sentence for detect in detectors for sentence in detect(got, want)]
    return sentences if len(sentences) == 1 else []


def close(a: Array, b: Array) -> bool:
    """Return whether two arrays are finite and equal up to rounding."""
    return bool(_near(a, b).all() and numpy.isfinite(b).all())


def _near(a: Array, b: Array) -> Array:
    """Return a bool array that is True where two arrays are equal up to rounding.

    This function is three times as fast as numpy.isclose. It treats any finite number as equal to
    infinity, so callers check for infinity separately.
    """
    return numpy.asarray(numpy.abs(a - b) <= 1e-8 + 1e-5 * numpy.abs(b))


def _swapped(got: Array, want: Array) -> Iterator[str]:
    """Detect two swapped dimensions, even if a reshape restored the shape."""
    last = want.ndim - 1
    for one, other in combinations(range(want.ndim), 2):
        swapped = want.swapaxes(one, other)
        if close(want, swapped.reshape(want.shape)) or not close(got, swapped.reshape(want.shape)):
            continue
        if swapped.shape == want.shape:
            are_last = (one, other) == (last - 1, last)
            which = "its last two dimensions" if are_last else f"dimensions {one} and {other}"
            yield f"It is the right answer with {which} swapped."
        else:
            yield (
                "The numbers are right, but in the order of the right answer with dimensions "
                f"{one} and {other} swapped. Which step should swap these dimensions, and does it "
                "move the numbers?"
            )


def _moved(got: Array, want: Array) -> Iterator[str]:
    """Detect rows, columns or other slices that are right, but in the wrong order."""
    for dim in range(-want.ndim, 0):
        if want.ndim > 1:
            order = _order(_slices(got, dim), _slices(want, dim))
            yield from _order_sentences(order, dim, want.ndim)


def _slices(entries: Array, dim: int) -> Array:
    """Return a matrix with one row for each slice along a dimension."""
    return numpy.moveaxis(entries, dim, 0).reshape(entries.shape[dim], -1)


def _order(got: Array, want: Array) -> list[int | None]:
    """Return, for each row of `got`, the index of the equal row of `want`.

    The index is None if no row of `want` is equal. The list is empty if two rows of `want` are
    equal, or if there are too many rows or too few numbers.
    """
    if not 2 <= len(want) <= _MOST_SLICES or len(numpy.unique(want)) < 2 * len(want):
        return []
    if int(_close_rows(want, want).sum()) > len(want):
        return []
    are_close = _close_rows(got, want)
    return [int(row.argmax()) if row.any() else None for row in are_close]


def _close_rows(got: Array, want: Array) -> Array:
    """Return a matrix whose entry (i, j) is whether row i of `got` is close to row j of `want`."""
    return numpy.asarray(_near(got[:, None], want[None]).all(-1))


def _order_sentences(order: list[int | None], dim: int, dims: int) -> Iterator[str]:
    count = len(order)
    kind = _KINDS.get(dim, "part")
    where = "" if dim in _KINDS else f" (along dimension {dims + dim})"
    known = [place for place in order if place is not None]
    if len(known) == count and order != list(range(count)):
        if len(set(known)) == 1:
            yield f"Every {kind} is the right {kind} {known[0]}{where}."
        elif known == list(reversed(range(count))) and count > 2:
            yield f"The {kind}s are right, but are in reverse order{where}."
        elif len(set(known)) == count and not _is_shift(order):
            yield f"The {kind}s are right, but are in the order {known}{where}."
    if _is_shift(order):
        side = "before" if order[1] == 0 else "after"
        yield f"Each {kind} has the right numbers of the {kind} {side} it{where}."


def _is_shift(order: list[int | None]) -> bool:
    """Return whether all rows are moved down by one place, or all rows are moved up by one place.

    If rows are moved down, the first row is ignored. If rows are moved up, the last row is ignored.
    """
    count = len(order)
    down, up = order[1:] == list(range(count - 1)), order[:-1] == list(range(1, count))
    return count > 2 and (down or up)


def _offset(got: Array, want: Array) -> Iterator[str]:
    """Detect an offset: one for all entries, one for each column, or one for each row."""
    off = got - want
    rows = off.reshape(-1, off.shape[-1]) if off.ndim else off.reshape(1, 1)
    first = rows[:1]
    right = want.reshape(rows.shape)
    rows_differ = bool(_largest(right - right[:1]) > 1e-2 * _largest(want))
    if not _largest(rows) > 1e-6 * _largest(want):
        return
    if _are_equal(rows, rows[0, 0], want):
        amount = float(rows[0, 0])
        side = "more" if amount > 0 else "less"
        yield f"Every entry is {abs(amount):.4g} {side} than it should be."
    elif len(rows) > 2 and rows_differ and _are_equal(rows, first, want):
        yield "Every row is off by the same numbers, as if something were added or missing."
    elif rows.shape[-1] > 2 and len(rows) > 1 and _are_equal(rows, rows[:, :1], want):
        yield "All numbers of a row are off by the same amount, which differs from row to row."


def _are_equal(differences: Array, offset: Array, want: Array) -> bool:
    """Return whether all differences equal the offset, up to the rounding errors of `want`."""
    return bool(numpy.allclose(differences, offset, rtol=1e-5, atol=1e-7 * _largest(want)))


def _largest(entries: Array) -> float:
    return float(numpy.abs(entries).max())


def _rounded(got: Array, want: Array) -> Iterator[str]:
    """Detect numbers that are rounded to a few decimal places or to a 16-bit dtype."""
    for digits in range(5):
        rounded = want.round(digits)
        if close(got, rounded) and len(numpy.unique(rounded)) >= _FEWEST:
            what = f"{digits} decimal places" if digits else "whole numbers"
            yield f"It is the right answer, rounded to {what}."
            return
    for name, (cut, step) in _HALF.items():
        near = numpy.allclose(got, want, rtol=4 * step, atol=1e-3)
        if near and numpy.array_equal(cut(got), got) and len(numpy.unique(got)) >= _FEWEST:
            yield f"It is right within the precision of {name}: some step rounds to {name}."
            return


def _as_bfloat16(entries: Array) -> Array:
    """Round to bfloat16, which consists of the upper 16 bits of float32; round ties to even."""
    bits = entries.astype(numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return rounded.astype(numpy.uint32).view(numpy.float32).astype(numpy.float64)


def _as_float16(entries: Array) -> Array:
    return entries.astype(numpy.float16).astype(numpy.float64)


_HALF: dict[str, tuple[Callable[[Array], Array], float]] = {
    "bfloat16": (_as_bfloat16, 2.0**-7),
    "float16": (_as_float16, 2.0**-10),
}
"""The rounding function and the machine epsilon of each dtype with 16 bits."""


def _clipped(got: Array, want: Array) -> Iterator[str]:
    """Detect that all numbers above or below a bound are replaced by the bound."""
    for bound, is_top in ((float(got.max()), True), (float(got.min()), False)):
        cut = want.clip(max=bound) if is_top else want.clip(min=bound)
        left = got[(cut == want) & (got != 0)]
        changed = int((cut != want).sum())
        if changed > 1 and len(numpy.unique(left)) > _FEWEST and close(got, cut):
            side = "above" if is_top else "below"
            became = f"All numbers {side} {bound:.4g} have become {bound:.4g}"
            yield f"{became}; the other numbers are right."


def _dropped(got: Array, want: Array) -> Iterator[str]:
    """Detect dropout: some numbers are 0, and all others are multiplied by the same factor."""
    kept = (got != 0) & (want != 0)
    lost = (got == 0) & (want != 0)
    if int(lost.sum()) < 2 or int(kept.sum()) < _FEWEST:
        return
    factor = float(got[kept][0] / want[kept][0])
    is_factor = math.isfinite(factor) and factor > 1 and f"{factor:.4g}" != "1"
    if is_factor and close(got[kept], factor * want[kept]):
        yield f"Some numbers are 0; all other numbers are {factor:.4g} times what they should be."


def _transformed(got: Array, want: Array) -> Iterator[str]:
    """Detect that a function such as exp maps each right number to the wrong number."""
    if name := transformation(got, want):
        yield f"Every entry is {name} what it should be."


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp of": numpy.exp,
    "the logarithm of": numpy.log,
    "the square of": numpy.square,
    "the root of": numpy.sqrt,
    "one divided by": numpy.reciprocal,
}


def transformation(got: Array, want: Array) -> str:
    """Return the name of the function that maps `want` to `got`, such as "exp of".

    Return an empty string if no function fits or several functions fit.
    """
    with numpy.errstate(all="ignore"):
        fits = [name for name, of in _FUNCTIONS.items() if close(of(want), got)]
    return fits[0] if len(fits) == 1 else ""
