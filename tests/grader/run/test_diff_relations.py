"""How a wrong answer is related to the right one is told when it is certain, and only then."""

from __future__ import annotations

import pytest
import torch
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

RELATED = [
    (SQUARE.T, SQUARE, "with its last two dimensions swapped"),
    (numbers(3, 3, 4).transpose(0, 1), numbers(3, 3, 4), "with dimensions 0 and 1 swapped"),
    (
        HEADS.transpose(1, 2).reshape(HEADS.shape),
        HEADS,
        "when dimensions 1 and 2 are swapped. view",
    ),
    (X.flip(1), X, "The rows are right, but stand in reverse order."),
    (X.flip(2), X, "The columns are right, but stand in reverse order."),
    (X.flip(0), X, "The parts are right, but stand in the order [1, 0] (along dimension 0)."),
    (X[:1].expand_as(X), X, "Every part is the right part 0 (along dimension 0)."),
    (X[:, -1:].expand_as(X), X, "Every row is the right row 3."),
    (HEADS[:, [1, 0, 2]], HEADS, "stand in the order [1, 0, 2] (along dimension 1)"),
    (X.roll(1, 1), X, "Each row is the right one for the row before it."),
    (torch.cat([X[:, 1:], 0 * X[:, :1]], 1), X, "Each row is the right one for the row after it."),
    (X + 0.5, X, "Every entry is 0.5 more than it should be."),
    (X - 3, X, "Every entry is 3 less than it should be."),
    (X + ADDED, X, "Every row is off by the same numbers"),
    (X + numbers(2, 4, 1), X, "All numbers of a row are off by the same amount"),
    (X.round(decimals=2), X, "rounded to 2 digits after the point"),
    ((10 * X).round(), 10 * X, "rounded to whole numbers"),
    (X.bfloat16().double(), X, "as far as bfloat16 reaches"),
    (X.half().double(), X, "as far as float16 reaches"),
    (X.clamp(max=0.5), X, "Everything above 0.5 has become 0.5; the rest is right."),
    (X.relu(), X, "Everything below 0 has become 0; the rest is right."),
    (2.5 * X * (numbers(2, 4, 3) > -0.3), numbers(2, 4, 3), "2.5 times what they should be, as dr"),
]


@pytest.mark.parametrize(("got", "want", "words"), RELATED, ids=[words for *_, words in RELATED])
def test_what_is_certain_is_told(got: Tensor, want: Tensor, words: str) -> None:
    (sentence,) = relations(got.numpy(), want.numpy())
    assert words in sentence
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
]


@pytest.mark.parametrize(("got", "want"), UNRELATED)
def test_nothing_is_told_that_is_not_certain(got: Tensor, want: Tensor) -> None:
    assert relations(got.double().numpy(), want.double().numpy()) == []


def test_two_relations_that_both_fit_are_none() -> None:
    want = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.float64)
    assert (
        relations(want[[1, 0]].numpy(), want.numpy()) == []
    )  # 3 is added or taken away in each row, too
