"""What a call costs is counted where it runs, and nothing of this side's is."""

import pytest
import torch

from grader.cost import counting
from grader.isolation import WorkerFailure
from grader.result import Status

SOURCE = """
    import torch
    from torch import nn
    import torch.nn.functional as F

    def product(x, y): return x @ y
    def attend(q, k, v): return F.scaled_dot_product_attention(q, k, v)
    def fail(x): (x @ x).sum(); raise ValueError("no")
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 8)
        def forward(self, x): return self.linear(x)
        def twice(self, x): return self.linear(x) + self.linear(x)
        @property
        def square(self): return self.linear.weight @ self.linear.weight.T
    """


def numbers(cost):
    return cost.operations, cost.elements, cost.largest


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_calls_methods_and_properties_count_as_in_process(opened, mode):
    problem, x = opened(SOURCE), torch.ones(3, 4)
    layer = problem.Layer()
    with mode():
        with counting() as cost:
            layer(x)
        assert numbers(cost) == (2 * 3 * 4 * 8, 24, 24)
        with counting() as cost:
            layer.twice(x)
        assert numbers(cost) == (4 * 3 * 4 * 8, 72, 24)
        with counting() as cost:
            layer.square  # noqa: B018
        assert numbers(cost) == (2 * 8 * 4 * 8, 64, 64)
        with counting() as cost:
            problem.attend(x[None], x[None], x[None])
        assert cost.operations == 4 * 3 * 3 * 4
    with counting() as cost:
        pass
    assert numbers(cost) == (0, 0, 0)


def test_what_the_test_does_itself_counts_beside_it(opened):
    problem, x = opened(SOURCE), torch.ones(3, 3)
    with counting() as outer:
        y = problem.product(x, x)
        with counting() as inner:
            problem.product(y @ x, x)
    assert (outer.operations, inner.operations) == (3 * 54, 2 * 54)


def test_backward_passes_count_and_calls_that_raise(opened):
    problem, x = opened(SOURCE), torch.ones(3, 3, requires_grad=True)
    with counting() as cost:
        problem.product(x, x).sum().backward()
    assert cost.operations == 3 * 54
    with counting() as cost, pytest.raises(ValueError, match="no"):
        problem.fail(x)
    assert cost.operations == 54


LIES = """
import gc
def told(cost):
    worker = next(o for o in gc.get_objects() if type(o).__name__ == "Worker")
    answer = type(worker).answer
    def lie(self, header, request):
        told, tensors = answer(self, header, request)
        return told | {"cost": cost}, tensors
    type(worker).answer = lie
def f(x): return x @ x
"""


@pytest.mark.parametrize(
    "cost", ["[-1, 0, 0]", "[1 << 62, 0, 0]", "[1]", "None", "[0.5, 1, 1]", "[True, 0, 0]", "'x'"]
)
def test_a_worker_can_not_tell_what_is_no_cost(opened, cost):
    problem, x = opened(f"{LIES}\ntold({cost})"), torch.ones(2, 2)
    assert problem.f(x).sum() == 8  # nobody asked
    with counting() as counted, pytest.raises(WorkerFailure) as caught:
        problem.f(x)
    assert caught.value.status is Status.BAD_OUTPUT
    assert numbers(counted) == (0, 0, 0)
