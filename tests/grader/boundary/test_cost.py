"""What a call costs is counted where it runs, and nothing of this side's is."""

import pytest
import torch

from grader.boundary.failures import WorkerFailure
from grader.code.cost import counting
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
    respond = type(worker).respond
    def lie(self, request):
        told, tensors = respond(self, request)
        if told.cost is not None:
            told.cost = cost
        return told, tensors
    type(worker).respond = lie
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


FORGING = """
import gc
import sys
import torch
import torch.utils._python_dispatch as dispatch
from torch._C import DispatchKey, DispatchKeySet

def product(x, w): return x @ w

def without_modes(x, w):
    with dispatch._disable_current_modes():
        return x @ w

def without_dispatch(x, w):
    with torch._C._DisableTorchDispatch():
        return x @ w

def without_the_key(x, w):
    with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.Python)):
        return x @ w

def with_costs_that_stay(x, w):
    for found in gc.get_objects():
        if type(found).__name__ == "Cost":
            found._paused = 1
    return x @ w

def without_a_profiler(x, w):
    torch._C._autograd._disable_profiler_legacy()
    return without_modes(x, w)

def inside_of_another(x, w):
    one = torch.cdist(x, w.T, compute_mode="use_mm_for_euclid_dist").square()
    return (x.square().sum(1, True) + w.T.square().sum(1) - one) / 2

def by_convolution(x, w):
    with dispatch._disable_current_modes():
        return torch.conv1d(x[:, :, None], w.T[:, :, None])[..., 0]

class Lazy(torch.Tensor):
    def __new__(cls, x, w):
        new = torch.Tensor._make_wrapper_subclass(cls, (x.shape[0], w.shape[1]), dtype=x.dtype)
        new.of = x, w
        return new
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [arg.of[0] @ arg.of[1] if type(arg) is cls else arg for arg in args]
        return func(*args, **(kwargs or {}))

def when_it_is_told(x, w): return Lazy(x, w)

class Meta(type):
    @property
    def __name__(cls):
        cls.out.copy_(cls.of[0] @ cls.of[1])
        return "list"

def when_its_class_is_told(x, w):
    out = torch.zeros(x.shape[0], w.shape[1])
    return [Meta("Mine", (list,), {"out": out, "of": (x, w)})(), out]

def views(x, w):
    return (x @ w).T.expand(3, 7, 5), x.new_zeros(1).expand(1000)
"""

OF_PRODUCT = 2 * 5 * 6 * 7


@pytest.mark.parametrize(
    "way",
    ["without_modes", "without_dispatch", "without_the_key", "with_costs_that_stay"]
    + ["inside_of_another", "by_convolution", "when_it_is_told"],
)
def test_a_product_that_hides_is_counted(opened, way):
    problem, x, w = opened(FORGING), torch.randn(5, 6), torch.randn(6, 7)
    with counting() as cost:
        found = getattr(problem, way)(x, w)
    torch.testing.assert_close(found, x @ w)
    assert cost.operations >= OF_PRODUCT


def test_who_stops_the_counting_has_no_answer(opened):
    with counting(), pytest.raises(WorkerFailure, match="stopped the counting") as failure:
        opened(FORGING).without_a_profiler(torch.ones(5, 6), torch.ones(6, 7))
    assert failure.value.status is Status.BAD_OUTPUT


def test_to_tell_a_class_runs_no_code_of_its_own(opened):
    problem, x, w = opened(FORGING), torch.randn(5, 6), torch.randn(6, 7)
    with counting():
        _, found = problem.when_its_class_is_told(x, w)
    assert not found.any()


def test_honest_code_costs_no_more_for_being_told(opened):
    """Answers that are turned or stretched are copied to be sent; that isn't the code's cost."""
    problem, x, w = opened(FORGING), torch.randn(5, 6), torch.randn(6, 7)
    for way, elements in (("product", 35), ("views", 36)):
        with counting() as cost:
            getattr(problem, way)(x.requires_grad_(), w)
        assert (cost.operations, cost.elements) == (OF_PRODUCT, elements)
