"""Calls across the boundary: the same answers and gradients as in process, and loud refusals."""

import math
import textwrap

import numpy
import pytest
import torch
from torch import nn

from grader.boundary.failures import WorkerFailure
from grader.diagnose.answers import attempt
from grader.errors import Mismatch
from grader.result import Status
from grader.run.compare import check
from tests.grader.boundary.batched_calls import answers


def test_functions_answer_as_in_process(opened):
    problem = opened("def scale(x, by=2.0, *, plus=None): return x * by + (plus or 0)")
    x = torch.randn(2, 3)
    assert torch.equal(problem.scale(x), 2 * x)
    assert torch.equal(problem.scale(x, 3, plus=1), 3 * x + 1)
    assert torch.equal(problem.scale(x=x.double(), by=-1.0), -x.double())


def test_nested_and_plain_answers(opened):
    problem = opened(
        """
        import torch
        def several(x):
            return {"a": [x, (x + 1, None)], "n": 3, "f": float("nan"), "s": x.shape, "t": "é"}
        LIMIT = 12
        """
    )
    answer = problem.several(torch.ones(2))
    assert torch.equal(answer["a"][1][0], torch.full((2,), 2.0))
    assert math.isnan(answer["f"])
    assert answer["s"] == torch.Size([2])
    assert (answer["n"], answer["t"], problem.LIMIT) == (3, "é", 12)


def test_numpy_numbers_are_floats_and_other_things_keep_their_name(opened):
    problem = opened(
        """
        import numpy
        def number(): return numpy.float64(0.25)
        def array(): return numpy.zeros(3)
        def function(): return number
        """
    )
    assert type(problem.number()) is float
    assert type(problem.array()).__name__ == "ndarray"
    assert type(problem.function()).__name__ == "function"


def test_missing_names(opened):
    problem = opened("def softmaks(x): return x")
    with pytest.raises(AttributeError) as caught:
        problem.softmax  # noqa: B018
    assert caught.value.name == "softmax"
    assert "softmaks" in vars(caught.value.obj)
    assert not hasattr(problem, "anything")


def test_memory(opened):
    problem = opened(
        "import torch\ndef f(): return torch.zeros(10 ** 12)\ndef g(): return bytearray(1 << 40)"
    )
    for function in (problem.f, problem.g):
        with pytest.raises(MemoryError):
            function()


@pytest.mark.slow
def test_a_scripted_function_can_read_its_source(opened):
    source = """
        import torch

        @torch.jit.script
        def double(x: torch.Tensor) -> torch.Tensor:
            return x + x
    """
    assert opened(source).double(torch.ones(1)).item() == 2


def test_what_the_argument_is_in_memory_is_kept(opened):
    problem = opened("def rows(x): return x.view(-1)")
    assert problem.rows(torch.ones(2, 3)).shape == (6,)
    with pytest.raises(RuntimeError, match="view size"):
        problem.rows(torch.ones(2, 3).T)


def test_a_result_without_data_has_a_form_and_no_numbers(opened):
    problem = opened("import torch\ndef f(n): return torch.ones(n, n, device='meta')")
    result = problem.f(2)
    assert (result.device.type, result.shape, result.dtype) == ("meta", (2, 2), torch.float32)
    assert "meta" in repr(result)
    for use in (
        lambda: check(result, torch.ones(2, 2), "f(2)"),
        lambda: torch.equal(result, torch.ones(2, 2)),
        lambda: result + 1,
        result.tolist,
    ):
        with pytest.raises(Mismatch, match="no numbers"):
            use()
    with pytest.raises(Mismatch, match="shape"):
        check(result, torch.ones(3, 3), "f(2)")
    assert attempt(lambda: problem.f(2)).instead == "returned-a-form"


def test_sparse_results_are_bad_output(opened):
    problem = opened("import torch\ndef f(): return torch.eye(3).to_sparse()")
    with pytest.raises(WorkerFailure, match="plain dense") as caught:
        problem.f()
    assert caught.value.status is Status.BAD_OUTPUT


@pytest.mark.parametrize(
    "value", [lambda: 0, nn.Linear(1, 1), object(), {1, 2}], ids=lambda v: type(v).__name__
)
def test_what_cannot_be_handed_over_is_refused(opened, value):
    problem = opened("def f(x): return 1")
    with pytest.raises(TypeError, match="can't be handed to a student's code"):
        problem.f(value)


# Gradients


def test_gradients_are_the_same_as_in_process(opened):
    problem = opened("def f(x, w): return (x.exp() @ w).tanh(), x.sum().detach(), w * 2")
    x, w = torch.randn(3, 2).double().requires_grad_(), torch.randn(2, 4).double().requires_grad_()
    upstream = torch.randn(3, 4).double()
    remote, plain, other = problem.f(x, w)
    assert (remote.requires_grad, plain.requires_grad, other.requires_grad) == (True, False, True)
    for _ in range(2):  # the graph can be used again
        found = torch.autograd.grad(remote, [x, w], upstream, retain_graph=True)
        expected = torch.autograd.grad((x.exp() @ w).tanh(), [x, w], upstream)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b)
    (gradient,) = torch.autograd.grad(other, [x], torch.ones(2, 4).double(), allow_unused=True)
    assert gradient is None


def test_gradcheck(opened):
    problem = opened("def f(x): return x.softmax(-1) * 3")
    assert torch.autograd.gradcheck(problem.f, torch.randn(2, 2).double().requires_grad_())


def test_detached_results_and_no_grad(opened):
    problem = opened("def f(x): return x.detach() * 2\ndef g(x): return x * 2")
    x = torch.ones(2, requires_grad=True)
    assert not problem.f(x).requires_grad
    with torch.no_grad():
        assert not problem.g(x).requires_grad


def test_double_backward_is_refused(opened):
    problem = opened("def f(x): return x ** 3")
    x = torch.ones(2, requires_grad=True)
    (first,) = torch.autograd.grad(problem.f(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        first.sum().backward()


def test_what_is_compiled_runs_as_it_is_written(opened):
    problem = opened("""
        import torch

        @torch.compile
        def double(x): return x + x

        @torch.compile(dynamic=True)
        def triple(x): return 3 * x

        def through_a_layer(x):
            layer = torch.nn.Linear(2, 2)
            layer.compile()
            return layer(x) - layer(x)
    """)
    x = torch.ones(2)
    assert torch.equal(problem.double(x), 2 * x)
    assert torch.equal(problem.triple(x), 3 * x)
    assert torch.equal(problem.through_a_layer(x), 0 * x)


@pytest.mark.slow
def test_an_optimizer_of_torchs_is_no_forbidden_call(opened):
    """It has torch load what has forbidden functions in it, unless that was done before."""
    problem = opened(
        """
        import torch
        def step():
            weight = torch.nn.Parameter(torch.ones(2))
            (weight * weight).sum().backward()
            torch.optim.Adam([weight], lr=0.1).step()
            return weight[0].item() < 1
        """,
        forbidden=("scaled_dot_product_attention",),
    )
    assert problem.step()


DRAWING = """
    import torch
    count = 0
    def draw(n, generator=None):
        global count
        count += 1
        return torch.randn(n, generator=generator).sum().item()
    def calls(): return count
    def picky(n): return 1 / n
"""


def drawn(function):
    """What some calls return, with generators and with seeds, and where they leave the states."""
    generators = [torch.Generator().manual_seed(seed) for seed in (7, 8)]
    torch.manual_seed(1)
    found = answers(function, [(3, generator) for generator in [*generators, generators[0]]])
    torch.manual_seed(2)
    found += answers(function, [(3,), (2,)])
    found += answers(function, [(n,) for n in range(1, 5)], seeds=[5, 5, 6, 7])
    return found


def test_many_calls_answer_as_one_by_one(opened):
    problem, here = opened(DRAWING), {}
    exec(textwrap.dedent(DRAWING), here)
    assert drawn(problem.draw) == drawn(here["draw"])
    assert problem.calls() == 9


def test_many_calls_move_on_what_they_draw_from(opened):
    problem, generator = opened(DRAWING), torch.Generator().manual_seed(7)
    states = [torch.get_rng_state(), generator.get_state()]
    answers(problem.draw, [(2,), (2, generator)])
    assert not torch.equal(torch.get_rng_state(), states[0])
    assert not torch.equal(generator.get_state(), states[1])
    answers(problem.calls, [()] * 2, seeds=[3, 4])
    assert torch.equal(torch.get_rng_state(), torch.Generator().manual_seed(4).get_state())


def test_many_calls_end_where_one_raises(opened):
    with pytest.raises(ZeroDivisionError):
        answers(opened(DRAWING).picky, [(1,), (0,), (2,)])


def test_more_calls_than_go_into_a_message(opened):
    assert answers(opened(DRAWING).picky, [(n,) for n in range(1, 250)])[-1] == 1 / 249


def test_many_calls_notice_a_changed_argument(opened):
    x = torch.ones(2, dtype=torch.int64)
    answers(opened("def f(x): return int(x.add_(1).sum())").f, [(x,)])
    assert not torch.equal(x, torch.ones(2, dtype=torch.int64))


def test_what_can_be_called_can_be_called_wherever_it_is_found(opened):
    """As in process: a file may have names that it makes when they are asked for."""
    problem = opened(
        """
        import torch
        from torch import nn
        def _double(x): return 2 * x
        def __getattr__(name):
            if name in ("double", "Layer"): return {"double": _double, "Layer": _Layer}[name]
            raise AttributeError(name)
        class _Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.act = torch.relu
            def forward(self, x): return self.act(x)
        """
    )
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(problem.double(x), 2 * x)
    layer = problem.Layer()
    assert torch.equal(layer(x), layer.act(x))
    with pytest.raises(AttributeError):
        problem.nothing()


ARRAYS = """
    import numpy as np
    def double(a): return 2 * a
    def zero(a): a[...] = 0
    def turned(a): return a.T, a[::-1]
    def reshaped(a): a.shape = (6,)
    def kinds(): return [np.float16(1), np.zeros(2, dtype=object), np.zeros(2, dtype="U3")]
"""


def test_arrays_go_both_ways(opened):
    problem, array = opened(ARRAYS), numpy.arange(6.0).reshape(2, 3)
    found = problem.double(array)
    assert type(found) is numpy.ndarray
    assert numpy.array_equal(found, 2 * array)
    assert found.dtype == array.dtype
    turned, reversed_ = problem.turned(array[:, ::2])
    assert numpy.array_equal(turned, array[:, ::2].T)
    assert numpy.array_equal(reversed_, array[::-1, ::2])
    assert [type(each).__name__ for each in problem.kinds()] == ["float16", "ndarray", "ndarray"]


def test_gradients_that_code_asks_for_its_argument_stay_asked_for(opened):
    problem, x = opened("def f(x): return 2 * x.requires_grad_().detach()"), torch.ones(3)
    assert torch.equal(problem.f(x), 2 * torch.ones(3))
    assert torch.equal(x, torch.ones(3))
    assert x.requires_grad


def test_gradients_that_are_not_wanted_any_more_are_a_change(opened):
    problem, x = opened("def f(x): x.requires_grad_(False)"), torch.ones(3, requires_grad=True)
    problem.f(x)
    assert not torch.equal(x, torch.ones(3))


def test_a_changed_array_is_seen(opened):
    problem, array = opened(ARRAYS), numpy.arange(1.0, 7.0).reshape(2, 3)
    for function, given in (
        (problem.zero, array),
        (problem.reshaped, array),
        (problem.zero, array[::-1]),
        (problem.zero, numpy.array([True, False])),
        (problem.zero, numpy.float32([0, 2])),
    ):
        before = given.copy()
        function(given)
        assert not numpy.array_equal(given, before)
        assert numpy.allclose(given, before) or given.dtype == bool
    whole = numpy.arange(3)
    problem.zero(whole)
    assert (whole != numpy.arange(3)).sum() == 1
    with pytest.raises(Mismatch, match="changed one of its arguments"):
        problem.zero(numpy.array([7]))  # which has no place to show it


def test_an_array_of_objects_cannot_be_handed_over(opened):
    with pytest.raises(TypeError, match="can't be handed"):
        opened(ARRAYS).double(numpy.zeros(2, dtype=object))
