"""Each edge question detects one kind of mistake, in any function or module."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from grader.diagnose import edges
from grader.diagnose.answers import Answer, attempt, same
from grader.diagnose.numbers import numbers

KEPT: list[Tensor] = []


def right(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).tanh()


def changes_y(x: Tensor, y: Tensor) -> Tensor:
    y.data.mul_(2)
    return (x * y / 2).tanh()


def in_float32(x: Tensor, y: Tensor) -> Tensor:
    return (x.float() * y.float()).tanh().to(x.dtype)


def float64_always(x: Tensor, y: Tensor) -> Tensor:
    return (x.double() * y).tanh()


def in_order_of_memory(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).tanh().T.contiguous().view(x.shape) if not x.is_contiguous() else right(x, y)


def detached(x: Tensor, y: Tensor) -> Tensor:
    return (x.detach() * y).tanh()


def clipped(x: Tensor, y: Tensor) -> Tensor:
    output = right(x, y)
    if output.requires_grad:
        output.register_hook(lambda slope: slope.clamp(-1, 1))
    return output


def keeps(x: Tensor, y: Tensor) -> Tensor:
    KEPT.append(x.detach())
    return (KEPT[0] * y).tanh() + 0 * x


def draws(x: Tensor, y: Tensor) -> Tensor:
    torch.rand(3)
    return right(x, y)


def switches_off(x: Tensor, y: Tensor) -> Tensor:
    output = right(x, y)
    torch.set_grad_enabled(False)
    return output


def overflows(x: Tensor, y: Tensor) -> Tensor:
    return right(x, y) + 0 * (x * x).exp()


def answers(function: Callable[..., Tensor]) -> dict[str, Answer]:
    KEPT.clear()
    arguments = {"x": numbers(3, 4), "y": numbers(3, 4, start=0.4)}
    asked = edges.of_function(function, arguments, large=100)
    return {name: attempt(question) for name, question in asked.items()}


@pytest.mark.parametrize(
    ("wrong", "shows"),
    [
        (right, set()),
        (changes_y, {"changes y", "gradient by x", "gradient by y", "gradient grows"}),
        (in_float32, {"steps are lost"}),
        (float64_always, {"float32"}),
        (in_order_of_memory, {"turned"}),
        (detached, {"gradient by x", "gradient grows"}),
        (clipped, {"gradient grows"}),
        (draws, {"random state moves"}),
        (switches_off, {"keeps gradient mode"}),
        (overflows, {"large numbers"}),
    ],
)
def test_each_edge_question_shows_one_mistake(
    wrong: Callable[..., Tensor], shows: set[str]
) -> None:
    known, answers_of_wrong = answers(right), answers(wrong)
    assert {
        name for name, answer in answers_of_wrong.items() if not same(answer, known[name])
    } == shows


def test_a_second_call_returns_the_same() -> None:
    known, answers_of_wrong = answers(right), answers(keeps)
    assert not same(answers_of_wrong["second call"], known["second call"])


class Scale(nn.Module):
    """A module that is correct except for the mistake with the name `wrong`."""

    def __init__(self, wrong: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(numbers(4))
        self.wrong = wrong
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.wrong == "changes weights":
            self.weight.data.add_(1)
        if self.wrong == "second call" and self.last is not None:
            x = x + self.last.mean()
        self.last = x.detach()
        factor = 2 if self.wrong == "training differs" and self.training else 1
        weight = self.weight.detach() if self.wrong == "gradient by weight" else self.weight
        return (x * weight * factor).sin()


@pytest.mark.parametrize(
    "wrong", ["", "changes weights", "second call", "training differs", "gradient by weight"]
)
def test_questions_about_modules(wrong: str) -> None:
    def asked(kind: str) -> dict[str, Answer]:
        def make(dtype: torch.dtype = torch.float64) -> nn.Module:
            return Scale(kind).to(dtype).eval()

        questions = edges.of_module(make, numbers(2, 4), other=numbers(3, 4), weights=("weight",))
        return {name: attempt(question) for name, question in questions.items()}

    known, answers_of_wrong = asked(""), asked(wrong)
    shown = {name for name, answer in answers_of_wrong.items() if not same(answer, known[name])}
    assert wrong in shown if wrong else not shown
    assert not any(answer.instead for answer in known.values())
