"""The relation of a wrong answer to the right answer is reported only if it is certain."""

from __future__ import annotations

import pytest
import torch
from syrupy.assertion import SnapshotAssertion
from torch import Tensor

from grader.diagnose.diff_relations import relations
from grader.errors import Mismatch
from grader.run.compare import check


def numbers(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


X, HEADS, SQUARE = numbers(2, 4, 3), numbers(2, 3, 4, 5), numbers(3, 3)
ADDED = torch.tensor([0.5, -0.25, 2.0])
WEIGHTS = torch.cat([SQUARE.softmax(-1), torch.eye(3)])

RELATED = {
    "last two swapped": (SQUARE.T, SQUARE),
    "first two swapped": (numbers(3, 3, 4).transpose(0, 1), numbers(3, 3, 4)),
    "swapped and reshaped": (HEADS.transpose(1, 2).reshape(HEADS.shape), HEADS),
    "rows reversed": (X.flip(1), X),
    "columns reversed": (X.flip(2), X),
    "parts reversed": (X.flip(0), X),
    "one part": (X[:1].expand_as(X), X),
    "one row": (X[:, -1:].expand_as(X), X),
    "parts in another order": (HEADS[:, [1, 0, 2]], HEADS),
    "row before": (X.roll(1, 1), X),
    "row after": (torch.cat([X[:, 1:], 0 * X[:, :1]], 1), X),
    "more": (X + 0.5, X),
    "less": (X - 3, X),
    "same numbers in each row": (X + ADDED, X),
    "one number for each row": (X + numbers(2, 4, 1), X),
    "two digits": (X.round(decimals=2), X),
    "whole numbers": ((10 * X).round(), 10 * X),
    "bfloat16": (X.bfloat16().double(), X),
    "float16": (X.half().double(), X),
    "clamped above": (X.clamp(max=0.5), X),
    "clamped below": (X.relu(), X),
    "dropout": (2.5 * X * (numbers(2, 4, 3) > -0.3), numbers(2, 4, 3)),
}
"""Maps each relation to a (returned value, expected value) pair."""


@pytest.mark.parametrize("name", RELATED)
def test_certain_relations_are_reported(name: str, snapshot: SnapshotAssertion) -> None:
    got, want = RELATED[name]
    (sentence,) = relations(got.numpy(), want.numpy())
    assert sentence == snapshot
    with pytest.raises(Mismatch) as raised:
        check(got, want, "f(x)")
    assert sentence in str(raised.value)


UNRELATED = [
    (X + numbers(2, 4, 3).sin(), X),
    (X.roll(1, 1) + 1e-3, X),
    (torch.zeros(2, 4, 3), X),
    (X.flip(1), torch.ones(2, 4, 3)),
    (torch.tensor([[2.0, 1.0], [1.0, 2.0]]), torch.tensor([[1.0, 2.0], [2.0, 1.0]])),
    (X * torch.inf, X),
    (
        torch.tensor([[0.5, 0.5, 0.0], [0.3, 0.3, 0.3]]),
        torch.tensor([[1, 0.5, 0], [0.3, 0.4, 0.3]]),
    ),
    (X[:1, :1].expand_as(X) + ADDED, X[:1, :1].expand_as(X)),
    (X[:1, :1] + 1e-4 * X + ADDED, X[:1, :1] + 1e-4 * X),
    (X[:, :1].mean(0, keepdim=True).expand_as(X), X),
    (WEIGHTS / (1 + 1e-6), WEIGHTS),
    (X * (X > -0.3) * (1 + 1e-9), X),  # some numbers are 0, the others differ by rounding
]


@pytest.mark.parametrize(("got", "want"), UNRELATED)
def test_uncertain_relations_are_not_reported(got: Tensor, want: Tensor) -> None:
    assert relations(got.double().numpy(), want.double().numpy()) == []


def test_of_two_matching_relations_none_is_reported() -> None:
    want = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.float64)
    assert (
        relations(want[[1, 0]].numpy(), want.numpy()) == []
    )  # the rows are swapped, or 3 is added or subtracted in each row
