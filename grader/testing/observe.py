"""What the numbers themselves show when an answer is wrong: a factor, an order, a missing sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor


def observations(
    actual: Tensor, expected: Tensor, wrong: Tensor, sizes: Mapping[str, int]
) -> list[str]:
    """Return sentences on how `actual` is related to `expected`; empty when nothing stands out.

    Args:
        actual: a tensor of the form of `expected`.
        expected: the right answer.
        wrong: bool, True where an entry is wrong.
        sizes: sizes such as `{"d_k": 16}` in whose terms a factor is named.
    """
    if not expected.is_floating_point():
        return []
    got, want = actual.double(), expected.double()
    if _nearly(got, want):
        cut = torch.equal(got, got.float().double()) and actual.dtype == torch.float64
        lost = "float64 was cut to float32" if cut else "digits were lost"
        return [f"It is nearly right, but not to the last digits: somewhere {lost}."]
    looks: list[Callable[[], str | None]] = [
        lambda: _not_finite(got, want),
        lambda: _factor(got, want, sizes),
        lambda: _sharpness(got, want, sizes),
        lambda: _other_order(got, want),
        lambda: _row_sums(got, want),
        lambda: _good_rows(wrong),
    ]
    found = (look() for look in looks)
    return [sentence for sentence in found if sentence][:2]


def _not_finite(got: Tensor, want: Tensor) -> str | None:
    nan = got.isnan() & ~want.isnan()
    if nan.any():
        return "There is NaN in it: look for 0/0, inf - inf, or exp of a number that is too large."
    if (got.isinf() & ~want.isinf()).any():
        return "There is inf in it: look for exp of a number that is too large, or x / 0."
    return None


def _factor(got: Tensor, want: Tensor, sizes: Mapping[str, int]) -> str | None:
    if want.numel() < 2:
        return None  # one number is always some factor times another
    scale = (got * want).sum() / (want * want).sum()
    factor = float(scale)
    if (
        not math.isfinite(factor)
        or abs(factor) < 1e-6
        or abs(factor - 1) < 1e-6
        or not _close(got, want * scale)
    ):
        return None
    return f"Every entry is {_name_factor(factor, sizes)} times what it should be."


def _sharpness(got: Tensor, want: Tensor, sizes: Mapping[str, int]) -> str | None:
    """See whether both are weights, and the scores behind them differ by a factor."""
    if want.dim() == 0 or not ((want > 0).all() and (got > 0).all()):
        return None
    ones = torch.ones_like(want.sum(-1))
    if not _close(want.sum(-1), ones) or not _close(got.sum(-1), ones):
        return None
    # softmax forgets a constant, so the logarithms are the scores but for each row's mean.
    scores, wanted = got.log(), want.log()
    scores, wanted = (s - s.mean(-1, keepdim=True) for s in (scores, wanted))
    factor = float((scores * wanted).sum() / (wanted * wanted).sum())
    if not math.isfinite(factor) or not torch.allclose(scores, wanted * factor, rtol=1e-3):
        return None
    return (
        f"The scores behind these weights are {_name_factor(factor, sizes)} times what they "
        "should be."
    )


def _name_factor(factor: float, sizes: Mapping[str, int]) -> str:
    for name, size in sizes.items():
        known = {
            f"√{name} = {math.sqrt(size):.4g}": math.sqrt(size),
            f"{name} = {size}": float(size),
            f"1/√{name} = {1 / math.sqrt(size):.4g}": 1 / math.sqrt(size),
            f"1/{name} = {1 / size:.4g}": 1 / size,
        }
        for text, value in known.items():
            if math.isclose(factor, value, rel_tol=1e-4):
                return text
    return f"{factor:.4g}"


def _other_order(got: Tensor, want: Tensor) -> str | None:
    if want.dim() >= 2 and want.shape[-1] == want.shape[-2] and _close(got, want.mT):
        return "It is the right answer with its last two dimensions swapped."
    if want.numel() > 3 and _close(got.flatten().sort().values, want.flatten().sort().values):
        return "All numbers are right, but not in their places: look at the order of dimensions."
    return None


def _row_sums(got: Tensor, want: Tensor) -> str | None:
    if want.dim() == 0:
        return None
    for dim, name in [(-1, "row"), (-2, "column")][: want.dim()]:
        sums, ones = got.sum(dim), torch.ones_like(want.sum(dim))
        if _close(want.sum(dim), ones) and not _close(sums, ones):
            # The one that is farthest off; NaN counts as farthest.
            worst = float(sums.flatten()[(sums - 1).abs().nan_to_num(math.inf).argmax()])
            return f"Each {name} of weights should sum to 1; one of them sums to {worst:.4g}."
    return None


def _good_rows(wrong: Tensor) -> str | None:
    if wrong.dim() < 2 or wrong.shape[-2] < 2:
        return None
    positions = wrong.any(-1).flatten(0, -2).any(0) if wrong.dim() > 2 else wrong.any(-1)
    last = len(positions) - 1
    bad = positions.nonzero().flatten().tolist()
    if bad == [0]:
        return "Only the first position is wrong."
    if bad == [last]:
        return "Only the last position is wrong."
    if bad == list(range(last)):
        return "Only the last position is right."
    if bad == list(range(1, last + 1)):
        return "Only the first position is right."
    return None


def _nearly(got: Tensor, want: Tensor) -> bool:
    """Return whether a result agrees at least as far as float32 reaches."""
    difference = (got - want).abs().max() if got.numel() else torch.zeros(())
    return bool(difference <= 1e-6 * want.abs().max())


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-5, atol=1e-8) and bool(torch.isfinite(a).all())
