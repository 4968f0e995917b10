"""A memoized function returns stored results for equal arguments only."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from torch import Tensor

from grader.code.tensors import Array
from grader.run.memoize import memoized

called: list[Any] = []


@memoized
def scaled(rows: Tensor, weights: dict[str, Tensor], factor: float = 1.0) -> Tensor:
    called.append(rows)
    return rows * weights["weight"] * factor


@memoized
def mapped(function: Any, rows: list[float]) -> tuple[Tensor, float]:
    called.append(rows)
    return torch.tensor([function(number) for number in rows]), sum(rows)


@memoized
def halved(rows: Array) -> Array:
    called.append(rows)
    return rows / 2


def twice(number: float) -> float:
    return 2 * number


def thrice(number: float) -> float:
    return 3 * number


def calls(run: Any) -> int:
    called.clear()
    run()
    return len(called)


def test_equal_arguments_are_worked_out_once() -> None:
    rows, weights = torch.arange(3.0), {"weight": torch.tensor(5.0)}
    assert calls(lambda: scaled(rows, weights)) == 1
    assert calls(lambda: scaled(rows.clone(), {"weight": torch.tensor(5.0)})) == 0
    assert scaled(rows, weights).tolist() == [0, 5, 10]


def test_arrays_are_told_apart_by_shape_and_dtype() -> None:
    rows = numpy.arange(6.0)
    assert calls(lambda: halved(rows)) == 1
    halved(rows)[:] = 7
    assert calls(lambda: halved(rows.copy())) == 0
    assert halved(rows).tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert calls(lambda: (halved(rows.reshape(2, 3)), halved(rows.view("int64")))) == 2


def test_other_arguments_are_others() -> None:
    rows, weights = torch.arange(4.0), {"weight": torch.tensor(5.0)}
    scaled(rows, weights)
    others: list[Any] = [
        lambda: scaled(rows + 1e-6, weights),
        lambda: scaled(rows[None], weights),
        lambda: scaled(rows.double(), weights),
        lambda: scaled(rows, {"weight": torch.tensor(6.0)}),
        lambda: scaled(rows, weights | {"bias": torch.zeros(1)}),
        lambda: scaled(rows, weights, 2.0),
    ]
    assert [calls(other) for other in others] == [1] * len(others)


def test_what_was_given_can_be_changed() -> None:
    rows, weights = torch.arange(5.0), {"weight": torch.tensor(1.0)}
    for _ in range(3):
        given = scaled(rows, weights)
        assert given.tolist() == [0, 1, 2, 3, 4]
        given += 1
    rows += 1  # changed in its place, so that it is another argument
    assert scaled(rows, weights).tolist() == [1, 2, 3, 4, 5]


def test_functions_are_told_apart() -> None:
    assert mapped(twice, [1.0, 2.0])[0].tolist() == [2, 4]
    assert mapped(thrice, [1.0, 2.0])[0].tolist() == [3, 6]
    assert calls(lambda: mapped(twice, [1.0, 2.0])) == 0


def test_a_function_of_the_moment_is_called_each_time() -> None:
    for factor in (2, 3):
        given, _ = mapped(lambda number, factor=factor: factor * number, [1.0])
        assert given.tolist() == [factor]


def test_room_is_bounded() -> None:
    weights = {"weight": torch.tensor(1.0)}
    large = [torch.full((500_000,), float(number)) for number in range(40)]  # 2 MB each
    for rows in large:
        scaled(rows, weights)
    assert calls(lambda: scaled(large[-1], weights)) == 0
    assert calls(lambda: scaled(large[0], weights)) == 1


def test_what_is_too_large_is_not_kept() -> None:
    rows, weights = torch.zeros(3_000_000), {"weight": torch.tensor(1.0)}
    assert calls(lambda: (scaled(rows, weights), scaled(rows, weights))) == 2
