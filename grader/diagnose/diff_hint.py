"""Find patterns in a wrong answer, such as a factor, a wrong order or a wrong row sum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import permutations

import numpy

from grader.code.tensors import Array
from grader.diagnose.diff_relations import close as _close
from grader.diagnose.diff_relations import relations, transformation
from grader.diagnose.evidence import Certainty, Evidence, Source, ranked

_ROUNDED = 2e-3
"""The relative tolerance of a factor that is computed from differences of rounded numbers."""

_MOST_SENTENCES = 2
"""The maximum number of sentences about one wrong answer."""


def diff_hints(
    got: Array,
    want: Array,
    wrong: Array,
    sizes: Mapping[str, int],
    exactness: float = 0,
    *,
    is_double: bool = True,
    start: Array | None = None,
) -> list[Evidence]:
    """Return evidence that relates a wrong answer to the right answer, the most certain first.

    The list is empty if no pattern is found.

    Args:
        got: the wrong answer, converted to float64.
        want: the right answer, of the same shape.
        wrong: a bool array, True for wrong entries.
        sizes: named sizes such as `{"d_k": 16}`, used to name a factor.
        exactness: the absolute error of `want`, which is 0 unless `want` is rounded.
        is_double: whether the answer was float64 before the conversion.
        start: an input to which the code adds another tensor, such as the x of a residual
            connection.
    """
    with numpy.errstate(all="ignore"):  # the arrays may contain NaN and inf
        if _is_imprecise(got, want, share=0.5 if is_double else 0.0):
            is_cut = is_double and numpy.array_equal(got, got.astype(numpy.float32))
            lost = "rounds float64 to float32" if is_cut else "loses digits"
            sentence = f"The result is right except for the last digits: some step {lost}."
            return [Evidence(sentence, Certainty.ALL, Source.DIGITS)]
        observations = [*_observations(got, want, wrong, sizes, exactness)]
        if start is not None and (added := _factor(got - start, want - start, sizes, _ROUNDED)):
            text = f"The part that is added to x is {added} times what it should be."
            observations.insert(0, Evidence(text, Certainty.ALL, Source.NUMBERS))
        return ranked(observations)[:_MOST_SENTENCES]


def _observations(
    got: Array, want: Array, wrong: Array, sizes: Mapping[str, int], exactness: float
) -> Iterator[Evidence]:
    """Yield evidence about a wrong answer, with simple patterns first."""
    related = next(iter(relations(got, want)), None)
    factor = _factor(got, want, sizes)
    observations = [
        (
            f"Every entry is {factor} times what it should be." if factor else None,
            Certainty.ALL,
            Source.NUMBERS,
        ),
        (_one_number(got, want), Certainty.ALL, Source.RELATION),
        (_score_factor(got, want, sizes, exactness), Certainty.ALL, Source.NUMBERS),
        (related, Certainty.ALL, Source.RELATION),
        (_order_in_rows(got, want), Certainty.ALL, Source.RELATION),
        (_zero_rows(got, want, wrong), Certainty.SOME, Source.NUMBERS),
        (_not_finite(got, want), Certainty.SOME, Source.NUMBERS),
        (_row_sums(got, want, exactness), Certainty.SOME, Source.NUMBERS),
        (_symmetric_scores(got, want, exactness), Certainty.SOME, Source.NUMBERS),
        (_other_order(got, want), Certainty.SOME, Source.RELATION),
        (_right_rows(wrong), Certainty.SOME, Source.NUMBERS),
    ]
    return (Evidence(text, sure, source) for text, sure, source in observations if text)


def _not_finite(got: Array, want: Array) -> str | None:
    if (numpy.isnan(got) & ~numpy.isnan(want)).any():
        return "The result contains NaN: look for 0/0, inf - inf, or exp of a large number."
    if (numpy.isinf(got) & ~numpy.isinf(want)).any():
        if numpy.isinf(want).any():
            return "Some entries are infinite, but should not be."
        return "The result contains inf: look for exp of a large number, log(0), or x / 0."
    return None


def _factor(got: Array, want: Array, sizes: Mapping[str, int], near: float = 1e-5) -> str | None:
    """Return the name of the factor if all entries are wrong by the same factor, or None."""
    if want.size < 2:
        return None  # any two numbers differ by some factor
    scale = (got * want).sum() / (want * want).sum()
    factor = float(scale)
    if (
        not math.isfinite(factor)
        or abs(factor) < 1e-6
        or abs(factor - 1) < 5 * near
        or not numpy.allclose(got, want * scale, near, 1e-8 + near**2)
    ):
        return None
    return name_factor(factor, sizes, max(near, 1e-4))


def _one_number(got: Array, want: Array) -> str | None:
    return number_hint(float(got.item()), float(want.item())) if want.size == 1 else None


def number_hint(got: float, want: float) -> str:
    """Return a sentence that relates a wrong number to the right number.

    Return an empty string if no relation is certain.
    """
    if not got or not want or not math.isfinite(got):
        return ""
    if math.isclose(got, -want, rel_tol=1e-5):
        return "It has the wrong sign."
    for name, factor in _CONSTANTS.items():
        if math.isclose(got, factor * want, rel_tol=1e-5):
            return f"It is {name} = {factor:.4g} times what it should be."
    if any(math.isclose(each, round(each), rel_tol=1e-6) for each in (got / want, want / got)):
        return ""  # 0.5 is the root of 0.25, but also twice 0.25
    name = transformation(numpy.array(got), numpy.array(want))
    return f"It is {name} what it should be." if name else ""


def _order_in_rows(got: Array, want: Array) -> str | None:
    """Detect rows with the right numbers in the wrong order. The numbers may be infinite."""
    if want.ndim == 0 or want.shape[-1] < 2 or numpy.isnan(got).any() or numpy.isnan(want).any():
        return None
    if _is_mask(want):
        return None  # too few different numbers to recognize an order
    is_near = numpy.allclose(got, want)  # entries in a wrong order differ by more
    if is_near or not numpy.allclose(numpy.sort(got), numpy.sort(want)):
        return None
    has_rows = want.ndim > 1
    return (
        "Each row that differs has the right numbers, but in the wrong order."
        if has_rows
        else "All numbers are right, but in the wrong order."
    )


def _is_mask(entries: Array) -> bool:
    """Return whether all entries are 0, 1 or infinite."""
    return bool(numpy.isin(entries, [0, 1, -numpy.inf, numpy.inf]).all())


def _zero_rows(got: Array, want: Array, wrong: Array) -> str | None:
    """Detect that all wrong rows contain only zeros."""
    if want.ndim < 2 or not wrong.any() or not want[wrong].any():
        return None
    rows = wrong.any(-1)
    if got[rows].any() or not want[rows].any(-1).all():
        return None
    return "All rows are 0." if rows.all() else "Each row that differs is all zeros."


def _score_factor(
    got: Array, want: Array, sizes: Mapping[str, int], exactness: float
) -> str | None:
    """Detect softmax weights whose scores are the right scores times a factor."""
    if want.ndim == 0:
        return None
    got, want = _without_zero_columns(got, want)
    if not _are_weights(got, exactness) or not _are_weights(want, exactness):
        return None
    # Softmax ignores a constant that is added to a row. So the scores and the logarithms of the
    # weights are equal after centering.
    wanted, scores = (
        numpy.log(weights) - (want * numpy.log(weights)).sum(-1, keepdims=True)
        for weights in (want, got)
    )
    factor = float((want * scores * wanted).sum() / (want * wanted * wanted).sum())
    if not math.isfinite(factor) or f"{factor:.4g}" == "1":
        return None
    atol = 4 * exactness + 1e-8
    if not numpy.allclose(_weights(wanted * factor), got, rtol=1e-4, atol=atol):
        return None
    name = name_factor(factor, sizes, max(1e-4, 20 * exactness))
    powers = ", as with powers of 2 instead of powers of e" if name.startswith("ln 2") else ""
    return f"The scores behind these weights are {name} times what they should be{powers}."


def _are_weights(entries: Array, exactness: float) -> bool:
    """Return whether all entries are above 0 and each row sums to 1."""
    return bool((entries > 0).all()) and _sum_to_one(entries, -1, exactness)


def _symmetric_scores(got: Array, want: Array, exactness: float) -> str | None:
    """Detect weights with symmetric scores, for example if queries are used as keys."""
    if want.ndim < 2:
        return None
    got, want = _without_zero_columns(got, want)
    if got.shape[-1] != got.shape[-2] or got.shape[-1] < 3:
        return None
    if not _are_weights(got, exactness) or not _are_weights(want, exactness):
        return None
    is_flat = numpy.allclose(got, 1 / got.shape[-1])
    if is_flat or not _are_scores_symmetric(got) or _are_scores_symmetric(want):
        return None
    return (
        "The scores behind these weights are symmetric: query i and key j have the same score as "
        "query j and key i."
    )


def _are_scores_symmetric(weights: Array) -> bool:
    """Return whether `weights` is the softmax of a symmetric matrix of scores.

    Each row of scores equals the logarithms of the weights plus a constant.
    """
    logs = numpy.log(weights)
    off = logs - logs.swapaxes(-1, -2)
    of_row = off.mean(-1, keepdims=True)
    return bool(numpy.allclose(off, of_row - of_row.swapaxes(-1, -2), atol=1e-3))


def _without_zero_columns(got: Array, want: Array) -> tuple[Array, Array]:
    """Remove the columns that are 0 in both arrays.

    If a column is 0 only in `want`, return both arrays unchanged.
    """
    used = (want != 0).reshape(-1, want.shape[-1]).any(0)
    return (got, want) if got[..., ~used].any() else (got[..., used], want[..., used])


def _weights(scores: Array) -> Array:
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    weights: Array = powers / powers.sum(-1, keepdims=True)
    return weights


_CONSTANTS = {"ln 2": math.log(2), "1/ln 2": 1 / math.log(2)}
"""The factors of the scores if softmax uses the base 2 instead of e, or e instead of 2."""


def name_factor(factor: float, sizes: Mapping[str, int], exactness: float = 1e-4) -> str:
    """Return a factor as a term of the sizes, such as "√d_k = 4".

    If no term is certain, return only the number, such as "4".
    """
    of_one = {
        text: value
        for name, size in sizes.items()
        for text, value in {
            f"√{name}": math.sqrt(size),
            name: float(size),
            f"1/√{name}": 1 / math.sqrt(size),
            f"1/{name}": 1 / size,
        }.items()
    }
    of_two = {
        text: value
        for (one, a), (other, b) in permutations(sizes.items(), 2)
        for text, value in {f"√({one}/{other})": math.sqrt(a / b), f"{one}/{other}": a / b}.items()
    }
    for known in (of_one | _CONSTANTS, of_two):
        fits = [text for text, v in known.items() if math.isclose(factor, v, rel_tol=exactness)]
        if fits and (known is not of_two or len(fits) == 1):
            return f"{' or '.join(fits)} = {factor:.4g}"
    return near_one(factor)


def near_one(number: float) -> str:
    """Format a number other than 1 with four digits, or with seven if four would show 1."""
    short = f"{number:.4g}"
    return f"{number:.7g}" if short == "1" else short


def _other_order(got: Array, want: Array) -> str | None:
    if _close(got, want) or _is_mask(want):
        return None
    if want.size > 3 and _close(numpy.sort(got, None), numpy.sort(want, None)):
        return "All numbers are right, but in the wrong order: look at the order of the dimensions."
    return None


def _row_sums(got: Array, want: Array, exactness: float) -> str | None:
    """Detect weights that should sum to 1 but do not."""
    if not numpy.isfinite(got).all() or (want < 0).any():
        return None  # `_not_finite` reports NaN and infinity; weights are never negative
    if want.ndim:
        got, want = _without_zero_columns(got, want)
    names = {-1: "row", -2: "column"}
    for dim, other in [(-1, -2), (-2, -1)][: want.ndim]:
        if not _sum_to_one(want, dim, exactness) or _sum_to_one(got, dim, exactness):
            continue
        if want.ndim > 1 and _sum_to_one(got, other, 0) and not _sum_to_one(want, other, 0):
            return f"Each {names[other]} sums to 1; each {names[dim]} should sum to 1 instead."
        sums = got.sum(dim)
        worst = near_one(float(sums.flat[numpy.abs(sums - 1).argmax()]))  # farthest from 1
        if want.ndim == 1:
            return f"The weights should sum to 1; they sum to {worst}."
        return f"Each {names[dim]} of weights should sum to 1; one {names[dim]} sums to {worst}."
    return None


def _sum_to_one(weights: Array, dim: int, exactness: float) -> bool:
    sums = weights.sum(dim)
    return bool(numpy.allclose(sums, 1, rtol=1e-5, atol=1e-8 + exactness * weights.shape[dim]))


def _right_rows(wrong: Array) -> str | None:
    if wrong.ndim < 2 or wrong.shape[-2] < 2:
        return None
    rows = numpy.asarray(wrong.reshape(-1, *wrong.shape[-2:]).any(-1))  # of each matrix
    one, last = "row is" if len(rows) == 1 else "rows are", rows.shape[1] - 1
    in_any, in_all = (numpy.flatnonzero(each).tolist() for each in (rows.any(0), rows.all(0)))
    if in_any == [0]:
        return f"Only the first {one} wrong."
    if in_any == [last]:
        return f"Only the last {one} wrong."
    if in_any == in_all == [*range(last)]:
        return f"Only the last {one} right."
    if in_any == in_all == [*range(1, last + 1)]:
        return f"Only the first {one} right."
    return None


def _is_imprecise(got: Array, want: Array, share: float) -> bool:
    """Return whether an answer is right to float32 precision, but many entries are not exact.

    Rounding changes most entries of a float64 answer. If most entries are exact, rounding is not
    the cause of the error.

    Args:
        got: the wrong answer.
        want: the right answer.
        share: the minimum fraction of the entries that are not exact.
    """
    difference, size = numpy.abs(got - want), numpy.abs(want).max(initial=0)
    near = bool(numpy.isfinite(difference).all() and (difference <= 1e-6 * size).all())
    return near and bool((difference > 1e-13 * size).mean() >= share)
