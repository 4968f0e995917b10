"""Where autograd is forbidden nothing of PyTorch differentiates, by whatever road."""

from __future__ import annotations

import linecache
from types import ModuleType

import pytest
import torch

from grader.code.forbidden import ForbiddenCall, Guard
from grader.code.loading import not_for_a_student
from grader.course import own_course
from tests.grader.boundary.roads_to_gradients import HEAD, ROADS

(PROBLEM,) = own_course().select(["10-training-step"])
FORBIDDEN = PROBLEM.entry.forbidden_where({"softmax_backward"})

UNNAMED = {"node called", "scripted operator", "scripted autograd", "differentiated by TorchScript"}
"""Roads that end with another exception: what they call isn't there, or TorchScript wraps it."""

UNSEEN_AT_HOME = {"traced at import", "operator: kernel", "operator of one's own"}
"""Roads that lead past the watch at home: below it, or through nothing but products and sums."""


@pytest.fixture
def given() -> tuple[torch.Tensor, torch.Tensor]:
    """Weights, and the gradient with respect to them."""
    drawn = torch.randn(2, 2, 3, dtype=torch.float64)
    return drawn[0].softmax(-1), drawn[1]


def right(weights: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return weights * (grad - (grad * weights).sum(-1, keepdim=True))


def loaded(road: str) -> ModuleType:
    """A wrong file, loaded as at home."""
    text, path = HEAD + ROADS[road], f"{road}/problem.py"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = ModuleType("problem_10")
    exec(compile(text, path, "exec"), vars(module))
    return module


@pytest.mark.parametrize("road", ROADS)
def test_without_a_rule_it_is_a_road(road, given):
    assert torch.allclose(loaded(road).softmax_backward(*given), right(*given))


@pytest.mark.parametrize("road", ROADS)
def test_no_road_leads_to_a_gradient(opened, road, given):
    problem = opened(HEAD + ROADS[road], FORBIDDEN)
    with pytest.raises(Exception) as raised:  # noqa: PT011  (or the name is missing)
        problem.softmax_backward(*given)
    is_missing = isinstance(raised.value, NameError)  # what made it was left out
    assert raised.type is ForbiddenCall or is_missing or road in UNNAMED


@pytest.mark.parametrize("road", [road for road in ROADS if road not in UNSEEN_AT_HOME])
def test_at_home_each_road_is_seen(road, given):
    module = loaded(road)
    guard = Guard(FORBIDDEN, not_for_a_student)
    try:
        with guard:
            module.softmax_backward(*given)
    except (ForbiddenCall, RuntimeError):  # TorchScript wraps what is raised in it
        pass
    assert guard.called == "autograd"


def test_at_home_a_test_may_differentiate(given):
    weights = given[0].clone().requires_grad_()
    with Guard(FORBIDDEN, not_for_a_student) as guard:
        weights.log().softmax(-1).backward(given[1])
        torch.func.vjp(torch.exp, given[0])
    assert guard.called is None
    assert weights.grad is not None
