"""Estimators: certain of one rule for all sizes, or silent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from grader.diagnose.estimate import Estimate, PowerLaw, power_law, told_scale
from grader.diagnose.estimate_shapes import about_names, about_shapes
from grader.diagnose.numbers import numbers
from shared.estimate_kept import Kept, about_kept
from shared.estimate_norm import about_norm
from shared.estimate_weights import (
    CAUSAL,
    Expected,
    Sight,
    Weighing,
    about_weights,
    sight_of,
)

SIZES = [{"n": n, "m": m} for n, m in [(2, 3), (4, 3), (5, 7), (6, 2), (9, 4)]]


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        (lambda n, m: 1 / math.sqrt(n), "divided by √n"),
        (lambda n, m: 8 / n**1.5, "divided by n √n, and multiplied by 8"),
        (lambda n, m: m / math.sqrt(2), "divided by √2, and multiplied by m"),
        (lambda n, m: n ** (1 / 3), "multiplied by n^(1/3)"),
        (lambda n, m: 1.0, "left unscaled"),
    ],
)
def test_a_factor_is_told_as_powers_of_sizes(
    factor: Callable[[int, int], float], told: str
) -> None:
    law = power_law([factor(**size) for size in SIZES], SIZES, ["n", "m"])
    assert law is not None
    assert told_scale(law) == told


def test_what_is_no_power_of_a_size_is_not_told() -> None:
    assert power_law([math.log(size["n"]) for size in SIZES], SIZES, ["n", "m"]) is None
    assert power_law([1 / size["n"] for size in SIZES][:3], SIZES[:3], ["n", "m"]) is None


def weighings(make: Callable[[Tensor], Tensor]) -> list[Weighing]:
    found = []
    for n, d in [(3, 4), (4, 6), (5, 3), (6, 9)]:
        scores = numbers(2, n, n, start=float(d))
        found.append(Weighing({"d": d, "T": n}, scores, make(scores)))
    return found


def said(found: Sequence[Estimate]) -> list[str]:
    return [each.when for each in found]


PLAIN = Expected(PowerLaw(1.0, {}), [("d", "T")])


@pytest.mark.parametrize(
    ("make", "begins"),
    [
        (lambda s: s.softmax(-1), ""),
        (lambda s: (s / s.shape[-1]).softmax(-1), "the scores are divided by T; they should"),
        (lambda s: s.softmax(-2), "the softmax runs over the queries"),
        (lambda s: s.softmax(0), "the softmax runs over the sequences"),
        (lambda s: s.float().softmax(-1).double(), "weights are computed in float32"),
        (
            lambda s: s.masked_fill(torch.ones_like(s).triu(2) == 1, -math.inf).softmax(-1),
            "each position sees itself, all before it and the one after it",
        ),
        (lambda s: s.sigmoid(), ""),
        (lambda s: (s**2).softmax(-1), ""),
        (lambda s: s * math.nan, ""),
    ],
)
def test_what_was_made_of_scores_is_read_off_the_weights(
    make: Callable[[Tensor], Tensor], begins: str
) -> None:
    found = said(list(about_weights(weighings(make), PLAIN)))
    assert len(found) == bool(begins)
    assert all(text.startswith(begins) for text in found)


@pytest.mark.parametrize("first", [None, -1, 0])
@pytest.mark.parametrize("last", [None, 0, 1])
def test_who_sees_what_is_told_by_offsets(first: int | None, last: int | None) -> None:
    masks = []
    for n in (4, 6):
        places = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        mask = torch.ones(n, n, dtype=torch.bool)
        mask &= places >= first if first is not None else mask
        mask &= places <= last if last is not None else mask
        masks.append(mask)
    assert sight_of(masks) == Sight(first, last)


def test_own_places_are_counted_from_the_end_where_only_that_fits() -> None:
    masks = [torch.ones(n, m).tril(m - n).bool() for n, m in [(2, 4), (3, 3), (2, 5)]]
    assert sight_of(masks) == Sight(None, 0, "end")
    assert sight_of([~torch.eye(4).bool()]) is None  # all but the own place: no such rule
    assert sight_of([torch.ones(4, 4).tril().bool()]) == CAUSAL


def test_a_way_with_shapes_has_to_fit_all_of_them() -> None:
    right = [(3,), (2, 3), (1,)]
    assert list(about_shapes(right, right)) == []
    (only,) = about_shapes([(3, 1), (2, 3, 1), (1, 1)], right)
    assert only.when.startswith("the result has a dimension too many, of size 1, at its end")
    assert list(about_shapes([(3, 1), (2, 3), (1, 1)], right)) == []
    assert list(about_shapes([(3, 1), None, (1, 1)], right)) == []  # too few to be sure


def test_other_names_for_the_same_things() -> None:
    wanted = {"a.weight": (2,), "b.weight": (3,), "b.bias": (1,)}
    assert list(about_names(wanted, wanted)) == []
    (only,) = about_names({"a.weight": (2,), "c.weight": (3,), "c.bias": (1,)}, wanted)
    assert only.when == "`b` is missing, and there is `c` of the same size"
    (only,) = about_names({"a.weight": (2,), "b.weight": (3,)}, wanted)
    assert only.when == "`b.bias` is missing, and nothing else"
    assert list(about_names({"a.weight": (2,), "c.weight": (4,), "c.bias": (1,)}, wanted)) == []


@pytest.mark.parametrize(
    ("number", "begins"),
    [
        (lambda right: right, None),
        (lambda right: right + 1, "one entry more"),
        (lambda right: max(1, right - 1), "one entry less than it should be is kept of each row,"),
        (lambda right: 2 * right, None),
    ],
)
def test_how_many_are_kept(number: Callable[[int], int], begins: str | None) -> None:
    rows = []
    for place, right in enumerate((1, 2, 4)):
        row = numbers(9, start=float(place))
        kept = torch.zeros(9, dtype=torch.bool)
        kept[row.argsort(descending=True)[: number(right)]] = True
        rows.append(Kept(row, kept, right, first=1))
    found = said(list(about_kept(rows)))
    assert len(found) == (begins is not None)
    assert all(text.startswith(begins or "") for text in found)


def norm(x: Tensor, eps: float | None, **how: float) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    eps = how.get("always", 1e-5 if eps is None else eps)
    variance = x.var(-1, keepdim=True, correction=how.get("correction", 0))
    if "outside" in how:
        return centred / (variance.sqrt() + eps)
    return centred / (variance + eps) ** how.get("power", 0.5)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({}, []),
        ({"correction": 1}, ["the squares are divided by n - 1, not by n"]),
        ({"outside": 1}, ["it is added to the root of the variance, not to the variance"]),
        ({"always": 1e-3}, ["eps is always 0.001"]),
        ({"always": 0}, ["no eps is added"]),
        ({"power": 1}, ["the row is divided by its variance, not by the root of that"]),
        ({"power": 0.7}, []),
    ],
)
def test_how_rows_are_normalised(how: dict[str, float], told: list[str]) -> None:
    assert said(list(about_norm(lambda x, eps: norm(x, eps, **how), 1e-5))) == told
