"""What a call changed is seen where it lies, not asked of the worker."""

import pytest
import torch

from grader.boundary.failures import WorkerFailure
from grader.errors import Mismatch
from grader.result import Status

# Makes every function of the worker's, wherever gc finds one, say that all is as it was.
LIES = """
import gc, sys, types, torch
from torch import nn
for module in [m for m in gc.get_objects() if isinstance(m, types.ModuleType)]:
    if module.__name__.startswith("grader"):
        for name in ("same", "_place", "memcmp"):
            if hasattr(module, name):
                setattr(module, name, lambda *a, **k: True)
for worker in gc.get_objects():
    if type(worker).__name__ in ("RequestReader", "StudentModule"):
        type(worker).changed_arguments = lambda self: ([], [])
torch.get_rng_state = torch.default_generator.get_state
"""


def test_a_worker_that_lies_can_not_hide_a_changed_argument(opened):
    problem = opened(LIES + "def f(x): return x.zero_()\ndef g(x): return x.detach().zero_()")
    for function in (problem.f, problem.g):
        for x in (torch.ones(3), torch.ones(2, 3).mT, torch.ones(3, dtype=torch.float16)):
            before = x.clone()
            function(x)
            assert not torch.equal(x, before)
            assert torch.allclose(x, before, atol=0.01)


def test_an_argument_in_a_graph_is_seen_too(opened):
    problem = opened("def f(x): return x.mul_(2)\ndef g(x): return x.detach().zero_() + x")
    for function in (problem.f, problem.g):
        leaf = torch.ones(3, requires_grad=True)
        x = leaf.clone()
        function(x)
        assert not torch.equal(x, torch.ones(3))
    x = torch.ones(3, requires_grad=True)
    problem.g(x)
    assert not torch.equal(x, torch.ones(3))


def test_a_worker_that_lies_can_not_hide_a_changed_mask(opened):
    problem = opened(LIES + "def f(x): return x.logical_not_()")
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    before = mask.clone()
    problem.f(mask)
    assert (mask != before).sum() == 1


def test_another_form_is_a_change(opened):
    problem = opened(
        "def turn(x): x.t_()\ndef cut(x): x.resize_(1)\n"
        "def swap(x): x.data = x.data + 1\ndef grow(x): x.unsqueeze_(0)"
    )
    for name in ("turn", "cut", "swap", "grow"):
        x = torch.ones(2, 3)
        getattr(problem, name)(x)
        assert not torch.equal(x, torch.ones(2, 3)), name


def test_who_restores_an_argument_has_not_changed_it(opened):
    problem = opened("def f(x):\n    y = x.mul_(2).clone()\n    x.div_(2)\n    return y")
    x = torch.ones(3)
    assert torch.equal(problem.f(x), torch.full((3,), 2.0))
    assert torch.equal(x, torch.ones(3))


MODULE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2, bias=False)
    def forward(self, x):
        y = self.linear(x)
        with torch.no_grad(): self.change()
        return y
    def change(self): pass
class Zero(M):
    def change(self): self.linear.weight.zero_()
class Data(M):
    def change(self): self.linear.weight.data.zero_()
class Swap(M):
    def change(self): self.linear.weight.data = torch.zeros(2, 2)
class Replace(M):
    def change(self): self.linear.weight = nn.Parameter(torch.zeros(2, 2))
"""


@pytest.mark.parametrize("lies", ["import torch\nfrom torch import nn\n", LIES])
def test_changed_weights_are_seen(opened, lies):
    problem = opened(lies + MODULE)
    x = torch.ones(1, 2)
    for name in ("Zero", "Data"):
        module = getattr(problem, name)()
        with pytest.raises(Mismatch, match=r"its own weights \(linear.weight\)"):
            module(x)
    module = problem.M()
    expected = x @ module.linear.weight.mT
    assert torch.equal(module(x), expected)
    assert torch.equal(module(x), expected)


def test_replaced_weights_are_seen_and_told_again(opened):
    problem = opened("import torch\nfrom torch import nn\n" + MODULE)
    x = torch.ones(1, 2)
    for name in ("Swap", "Replace"):
        module = getattr(problem, name)()
        expected = x @ module.linear.weight.mT
        for _ in range(2):
            with pytest.raises(Mismatch, match=r"its own weights \(linear.weight\)"):
                module(x)
        assert torch.equal(x @ module.linear.weight.mT, expected)


def test_what_a_students_code_keeps_of_its_arguments_stays_as_it_is(opened):
    problem = opened(
        "kept = []\n"
        "def keep(x): kept.append(x[1:])\n"
        "def total():\n    import torch\n    return torch.stack(kept).sum()"
    )
    for number in range(20):
        problem.keep(torch.full((4,), float(number)))
    assert problem.total() == 3 * sum(range(20))


def test_graphs_keep_the_arguments_of_their_call(opened):
    problem = opened("def square(x): return x * x")
    inputs = [torch.full((2,), float(number), requires_grad=True) for number in range(1, 5)]
    outputs = [problem.square(x if number % 2 else x * 1) for number, x in enumerate(inputs)]
    for x, y in zip(inputs, outputs, strict=True):
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert torch.equal(gradient, 2 * x)


def test_places_are_used_again(opened):
    problem = opened("def f(x): return x[0]")
    x = torch.ones(1 << 20)
    for _ in range(100):
        assert problem.f(x) == 1


def test_who_keeps_everything_runs_out_of_memory(opened):
    problem = opened("kept = []\ndef f(x): kept.append(x)")
    x = torch.ones(1 << 24)
    for _ in range(3):
        problem.f(x)
    with pytest.raises(WorkerFailure, match="keeps more") as caught:
        [problem.f(x) for _ in range(7)]
    assert caught.value.status is Status.MEMORY


def test_the_graders_own_modules_can_not_be_imported(opened):
    """So what is left of the worker's word is not one assignment away."""
    problem = opened(
        """
        import sys
        def found():
            names = [name for name in sys.modules if name.partition(".")[0] == "grader"]
            names += [name for name in vars(sys.modules["__main__"]) if name[:2] != "__"]
            try:
                import grader
                names.append("import")
            except ImportError:
                pass
            return names
        """
    )
    assert problem.found() == []


ASSIGNMENTS = [
    "torch.get_rng_state = lambda: STATE",
    "torch.random.get_rng_state = lambda: STATE",
    "torch.equal = lambda a, b: True",
    "torch.Tensor.numpy = lambda self: 0",
    "torch.Tensor.detach = lambda self: self",
    "torch.Tensor.data_ptr = lambda self: 0",
    "numpy.array_equal = lambda a, b: True",
    "torch.Generator.get_state = lambda self: STATE",
]


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_no_single_assignment_hides_that_random_numbers_were_drawn(opened, assignment):
    problem = opened(
        "import numpy, torch\nSTATE = torch.get_rng_state()\n"
        f"def f(): return torch.rand(1)\ntry: {assignment}\nexcept TypeError: pass\n"
    )
    torch.manual_seed(0)
    expected = torch.rand(2)[1]
    torch.manual_seed(0)
    try:
        problem.f()
    except Exception as failure:
        assert isinstance(failure, WorkerFailure)  # noqa: PT017
    else:
        assert torch.rand(1) == expected
