"""What code makes of scores, read off the weights: along what they sum to 1, which ones are hidden,
and what the scores were multiplied by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.code.tensors import Tensor, torch
from grader.diagnose.estimate import (
    TIGHT,
    Estimate,
    PowerLaw,
    simplest_power_law,
    told_scale,
    value,
)

_START, _END = "start", "end"

_FEWEST = 20
"""So many weights must have been rounded to be sure of it."""


@dataclass(frozen=True)
class Weighing:
    """Weights that came of scores, for one choice of sizes.

    Attributes:
        sizes: by name.
        scores: before anything was done to them, shape (..., n, m).
        weights: of the same shape.
    """

    sizes: Mapping[str, int]
    scores: Tensor
    weights: Tensor


@dataclass(frozen=True)
class Sight:
    """Which columns a row may see: those that are not too far before it, nor too far after it.

    Attributes:
        first: how far the first one is from the row's own place; None when there is no bound.
        last: the same for the last one.
        aligned: whether own places are counted from the start, or from the end of the columns.
    """

    first: int | None = None
    last: int | None = None
    aligned: str = _START


ALL = Sight()
CAUSAL = Sight(None, 0)
CAUSAL_TO_THE_END = Sight(None, 0, _END)


@dataclass(frozen=True)
class Expected:
    """What should be made of scores, and the words for it.

    Attributes:
        law: what scores should be multiplied by.
        choices: the names of sizes that a law may be told in.
        sight: which columns a row should see.
        dims: what the dimensions are called, the last one last.
        look: by "scale", "sums" and "sight", the nudge that goes with it.
    """

    law: PowerLaw
    choices: Sequence[Sequence[str]]
    sight: Sight = ALL
    dims: Sequence[str] = ("sequences", "queries", "keys")
    look: Mapping[str, str] = field(default_factory=dict)


def about_weights(weighings: Sequence[Weighing], expected: Expected) -> Iterable[Estimate]:
    """Return what is certainly wrong with weights; nothing where they are right, or unclear."""
    if any(w.weights.shape != w.scores.shape for w in weighings):
        return []
    supports = [_support(w.weights) for w in weighings]
    if any(s is None for s in supports):
        return []
    seen = [s for s in supports if s is not None]
    for dim in range(-1, -len(expected.dims) - 1, -1):
        if any(w.weights.dim() < -dim for w in weighings):
            break
        factors = [_factor(w, s, dim) for w, s in zip(weighings, seen, strict=True)]
        known = [factor for factor in factors if factor is not None]
        if len(known) == len(weighings):
            found = list(_told(weighings, seen, known, dim, expected))
            return found or _rounded(weighings)
    return []


def _rounded(weighings: Sequence[Weighing]) -> Iterable[Estimate]:
    """Yield that weights in float64 have the digits of float32, when all else is right."""
    weights = torch.cat([w.weights.detach().flatten() for w in weighings])
    between = weights[(weights > 0) & (weights < 1)]
    is_cut = weights.dtype == torch.float64 and torch.equal(between, between.float().double())
    if is_cut and len(between) >= _FEWEST:
        when = "weights are computed in float32, though all that comes in is float64"
        look = "Of what dtype is what goes into softmax, and is a dtype named anywhere?"
        yield Estimate("estimated: weights in float32", when, look)


def _told(
    weighings: Sequence[Weighing],
    supports: Sequence[Tensor],
    factors: Sequence[float],
    dim: int,
    expected: Expected,
) -> Iterable[Estimate]:
    """Yield what differs from what is expected of weights that are a softmax along `dim`."""
    if dim != -1:
        wrong, right = expected.dims[dim], expected.dims[-1]
        yield Estimate(
            f"estimated: softmax over {wrong}",
            f"the softmax runs over the {wrong}: along them the weights sum to 1, not along the "
            f"{right}",
            expected.look.get("sums", ""),
        )
    sight = sight_of(supports, expected.sight.aligned)
    if sight is None:
        return  # who sees what is no rule that could be told, so nothing is certain
    if sight != expected.sight:
        yield told_sight(sight, expected.sight, expected.look.get("sight", ""))
    sizes = [w.sizes for w in weighings]
    if all(
        abs(f / value(expected.law, s) - 1) < TIGHT for f, s in zip(factors, sizes, strict=True)
    ):
        return
    law = simplest_power_law(factors, sizes, expected.choices)
    if law is not None:
        told = told_scale(law)
        yield Estimate(
            f"estimated: scores {told}",
            f"the scores are {told}; they should be {told_scale(expected.law)}"
            if law.complexity
            else f"the scores are {told}",
            expected.look.get("scale", ""),
        )


def _support(weights: Tensor) -> Tensor | None:
    """Return which weights are not 0, (n, m); None when that hangs on more than the two places.

    A row of nothing but NaN had nothing to see.
    """
    lost = weights.isnan()
    if not (lost == lost.all(-1, keepdim=True)).all() or weights.isinf().any():
        return None
    seen = (weights != 0) & ~lost
    flat = seen.reshape(-1, *seen.shape[-2:])
    return flat[0] if bool((flat == flat[0]).all()) and bool(flat.any()) else None


def _factor(weighing: Weighing, support: Tensor, dim: int) -> float | None:
    """Return by what scores were multiplied before a softmax along `dim`; None if there was none.

    Softmax forgets a constant, so the logarithms of weights are the scores but for their mean.
    """
    weights = weighing.weights.detach().double()
    seen = support.expand_as(weights)
    sums = torch.where(seen, weights, 0).sum(dim)
    if not torch.allclose(sums[seen.any(dim)], torch.ones(()).double(), rtol=TIGHT):
        return None
    if bool((weights[seen] < 0).any()):
        return None
    scores = _centred(weighing.scores.double(), seen, dim)
    logs = _centred(torch.where(seen, weights, 1).log(), seen, dim)
    size = scores.square().sum()
    if not float(size) > TIGHT:
        return None
    factor = float((scores * logs).sum() / size)
    near = torch.allclose(logs, factor * scores, rtol=TIGHT, atol=TIGHT * float(logs.abs().max()))
    return factor if near and factor > 0 else None


def _centred(numbers: Tensor, seen: Tensor, dim: int) -> Tensor:
    """Return numbers less their mean over what is seen, and 0 elsewhere."""
    counts = seen.sum(dim, keepdim=True).clamp(min=1)
    means = torch.where(seen, numbers, 0).sum(dim, keepdim=True) / counts
    return torch.where(seen, numbers - means, 0)


def about_mask(masks: Sequence[Tensor], expected: Sight, look: str = "") -> Iterable[Estimate]:
    """Return what a mask shows, for several sizes, where it is another one than expected.

    Args:
        masks: bool, True where a column is seen, each of shape (n, m).
        expected: what should be seen.
        look: the nudge that goes with it.
    """
    sight = sight_of(masks, expected.aligned)
    if sight is not None and sight != expected:
        yield told_sight(sight, expected, look)


def sight_of(masks: Sequence[Tensor], aligned: str = _START) -> Sight | None:
    """Return the rule by which a row sees columns, the same for all sizes; None without one.

    Args:
        masks: bool, each of shape (n, m).
        aligned: how the rule is told where both ways fit.
    """
    for way in (aligned, *{_START, _END} - {aligned}):
        seen: set[int] = set()
        hidden: set[int] = set()
        for mask in masks:
            shift = mask.shape[1] - mask.shape[0] if way == _END else 0
            for row, column in ((i, j) for i in range(len(mask)) for j in range(mask.shape[1])):
                (seen if mask[row, column] else hidden).add(column - row - shift)
        if seen and not seen & hidden:
            first, last = min(seen), max(seen)
            if any(first < place < last for place in hidden):
                return None
            below, above = any(h < first for h in hidden), any(h > last for h in hidden)
            told = way if below or above else aligned  # who sees all sees it from either end
            return Sight(first if below else None, last if above else None, told)
    return None


def told_sight(sight: Sight, expected: Sight, look: str) -> Estimate:
    """Return the sentence on what each position sees."""
    if sight.aligned != expected.aligned and (sight.first, sight.last) == (None, 0):
        when = (
            "positions are counted from the first column, as if the rows began there, too: each "
            "sees too little, by as much as stands before the rows"
        )
    else:
        when = f"each position sees {_seen(sight)}; it should see {_seen(expected)}"
    return Estimate(f"estimated: sees {_seen(sight)}", when, look)


def _seen(sight: Sight) -> str:
    match (sight.first, sight.last):
        case (None, None):
            return "all positions"
        case (None, 0):
            return "itself and all before it"
        case (None, -1):
            return "those before it, but not itself"
        case (None, int(last)) if last < 0:
            return f"neither itself nor the {_counted(-last - 1)} before it"
        case (None, int(last)):
            return f"itself, all before it and the {_counted(last)} after it"
        case (0, None):
            return "itself and all after it, and none before it"
        case (1, None):
            return "those after it only, and not even itself"
        case (int(first), None):
            way = f"from {-first} before it on" if first < 0 else f"from {first} after it on"
            return f"those {way}, whatever comes later"
        case (0, 0):
            return "itself alone"
        case (int(first), int(last)):
            return f"only those from {_place(first)} to {_place(last)}"
    raise ValueError(sight)


def _place(offset: int) -> str:
    if offset == 0:
        return "its own place"
    return f"{abs(offset)} {'before' if offset < 0 else 'after'}"


def _counted(number: int) -> str:
    return "one" if number == 1 else str(number)
