"""What a call may not change or plant: random states, arguments, the results of other calls."""

import math
from types import SimpleNamespace

import pytest
import torch

from grader.errors import Mismatch
from tests.grader.boundary.batched_calls import answers


def test_random_numbers_follow_this_sides_seed(opened):
    problem = opened(
        """
        import torch
        def draw(generator=None): return torch.rand(3, generator=generator)
        def count(): return 1
        """
    )
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(problem.draw(), expected)
    assert not torch.equal(problem.draw(), expected)
    state = torch.get_rng_state()
    problem.count()
    assert torch.equal(torch.get_rng_state(), state)
    generator = torch.Generator().manual_seed(7)
    assert torch.equal(problem.draw(generator), expected)
    assert not torch.equal(problem.draw(generator=generator), expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_planted_random_state_does_not_arrive(opened):
    problem = opened(
        """
        import torch
        def plant():
            state = torch.get_rng_state()
            state[24 : 24 + 624 * 8] = 0  # from now on only zeros would be drawn
            torch.set_rng_state(state)
        """
    )
    state = torch.get_rng_state()
    problem.plant()
    assert not torch.equal(torch.get_rng_state(), state)  # it shows that something happened
    assert (torch.randn(100) != 0).any()


def test_the_default_dtype_is_this_sides(opened):
    problem = opened("import torch\ndef f(): return torch.zeros(1)")
    torch.set_default_dtype(torch.float64)
    try:
        assert problem.f().dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_changed_argument_is_marked(opened, dtype):
    """`torch.equal` sees it, as in process; but none of the student's numbers has come here."""
    problem = opened("def f(x):\n    x.zero_()\n    return x")
    x = torch.tensor([-math.inf, 0.0, -3.0, 1e4], dtype=dtype)
    before = x.clone()
    problem.f(x)
    assert not torch.equal(x, before)
    torch.testing.assert_close(x, before, rtol=3 * torch.finfo(dtype).eps, atol=0)


def test_of_the_largest_floats_one_is_marked_too(opened):
    problem = opened("def f(x): return x.zero_()")
    x = torch.full((2,), torch.finfo(torch.float32).max)
    before = x.clone()
    problem.f(x)
    assert not torch.equal(x, before)
    torch.testing.assert_close(x, before, rtol=1e-6, atol=0)


@pytest.mark.parametrize("start", [[False, True, False, True], [0, 1, 2, 3], [-1, -2, 5, 0]])
def test_in_a_changed_argument_of_whole_numbers_one_entry_differs(opened, start):
    """As in process, a test that doesn't look at it again has nothing against that."""
    problem = opened("def f(x): return x.zero_()\ndef back(x, before): x.copy_(before)")
    x = torch.tensor(start)
    problem.f(x)
    first = x.clone()
    assert (first != torch.tensor(start)).sum() == 1
    assert {*first.tolist()} <= {*range(int(min(start)), max(start) + 1)}
    problem.back(x, torch.tensor(start))
    assert (x != torch.tensor(start)).sum() == 2, "a second change does not undo the first"


@pytest.mark.parametrize("unchanged", [torch.tensor([True]), torch.ones(1, dtype=torch.int64)])
def test_a_changed_argument_that_cannot_be_marked_is_an_error(opened, unchanged):
    problem = opened("def f(a, x):\n    x.zero_()\n    return x")
    x = unchanged.clone()
    with pytest.raises(Mismatch, match="Your code changed one of its arguments"):
        problem.f(None, x)
    assert torch.equal(x, unchanged)


@pytest.mark.parametrize(
    "change",
    [
        "x.append(1)",
        "x.pop()",
        "x.clear()",
        "x[0] = None",
        "x.reverse()",
        "x[1][0] = x[1][1]",
        "x[1] += [1]",
    ],
)
def test_a_changed_list_is_longer(opened, change):
    """What a call put into a list stays there; that something did can be seen, as in process."""
    problem = opened(f"def f(x):\n    {change}\ndef g(x): return len(x)")
    inner = [torch.ones(1), torch.zeros(1)]
    outer = [torch.ones(2), inner, (inner,)]
    problem.f(outer)
    assert sorted([len(outer), len(inner)]) in ([2, 4], [3, 3])
    changed = outer if len(outer) == 4 else inner
    assert (changed is inner) == ("[1]" in change)
    with pytest.raises(Mismatch, match="Your code changed a list that it had been given"):
        problem.g(changed)


def test_a_list_that_is_only_read_stays(opened):
    problem = opened(
        "class Pasts(list):\n    pass\ndef make(): return Pasts([1])\n"
        "def grow(x): x.append(2)\n"
        "def f(x):\n    x[0] = x[0]\n    x[0].add_(1)\n    return [*x, 1]"
    )
    given = [torch.ones(1), [2]]
    assert len(problem.f(given)) == 3
    assert len(given) == 2
    own = problem.make()
    problem.grow(own)
    assert len(own) == 2


WRITES_OVER = """
import torch
kept = torch.zeros(3)
def f(x): return kept.copy_(x)
def parts(n): return kept[:n]
def through(x): return x
"""


def test_a_result_that_a_later_call_changes_cannot_be_used(opened):
    """As in process, a test that doesn't look at it again has nothing against that."""
    problem = opened(WRITES_OVER)
    first = problem.f(torch.ones(3))
    last = problem.f(torch.zeros(3))
    assert last.tolist() == [0, 0, 0]
    assert (first.shape, first.dtype) == ((3,), torch.float32)
    for use in (torch.Tensor.tolist, torch.Tensor.clone, lambda x: x[0], problem.through):
        with pytest.raises(Mismatch, match="When f was called, the result of an earlier call"):
            use(first)
    with pytest.raises(Mismatch, match="When f was called, the result of an earlier call"):
        torch.equal(last, first)
    assert problem.through(last).tolist() == [0, 0, 0]


def test_a_call_that_raises_may_have_changed_a_result(opened):
    problem = opened(WRITES_OVER + "def fails():\n    kept.zero_()\n    raise ValueError('no')")
    first = problem.f(torch.ones(3))
    with pytest.raises(ValueError, match="no"):
        problem.fails()
    with pytest.raises(Mismatch, match="When fails was called"):
        first.sum()


@pytest.mark.parametrize("asked", ["here", "in a worker"])
def test_calls_asked_at_once_are_looked_at_like_others(opened, asked):
    """Otherwise the last call's numbers would be taken for a wrong first answer."""
    problem = opened(WRITES_OVER)
    if asked == "here":
        problem = SimpleNamespace(**{})
        exec(WRITES_OVER, vars(problem))
    with pytest.raises(Mismatch, match="When f was called, the result of an earlier call changed"):
        answers(problem.f, [(torch.ones(3),), (torch.zeros(3),)])
    assert len(answers(problem.parts, [(1,), (2,), (2,)])) == 3
    x = torch.ones(2)
    assert len(answers(problem.through, [(x,), (x[:1],), (7,)])) == 3


def test_a_changed_result_is_told_once(opened):
    """What is called next, maybe in another test, has not changed it."""
    problem = opened(
        "import torch\nkept = torch.zeros(2)\n"
        "def one(): return kept\ndef other(): kept.add_(1)\ndef third(): return 3"
    )
    held = problem.one()
    problem.other()
    assert problem.third() == 3
    with pytest.raises(Mismatch, match="When other was called, the result of an earlier call"):
        held.sum()
    problem.begin_test()
    assert torch.equal(problem.one(), torch.ones(2))


def test_code_that_leaves_gradients_off_leaves_them_off(opened):
    """As it does in the process of a test, where the next call then has no gradients."""
    problem = opened(
        """
        import torch
        def leaves_off(x):
            torch.set_grad_enabled(False)
            return x
        def leaves_on(x):
            with torch.no_grad():
                return 2 * x
        def raises(x):
            torch.set_grad_enabled(False)
            raise ValueError("no")
        """
    )
    x = torch.ones(2, requires_grad=True)
    assert not problem.leaves_on(x).requires_grad
    assert torch.is_grad_enabled()
    try:
        problem.leaves_off(x)
        assert not torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        with pytest.raises(ValueError, match="no"):
            problem.raises(x)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_results_of_an_earlier_test_may_change(opened):
    """A test that failed may hold some for long; no later one may fail for that."""
    source = "last = []\ndef f(x):\n    [y.zero_() for y in last]\n    last[:] = [x * 2]\n"
    problem = opened(f"{source}    return last[0]")
    problem.begin_test()
    held = problem.f(torch.ones(2))
    problem.begin_test()
    own = problem.f(torch.ones(2))
    assert own.tolist() == held.tolist() == [2, 2]
    problem.f(torch.ones(2))
    assert held.tolist() == [2, 2]
    with pytest.raises(Mismatch, match="earlier call"):
        own.tolist()


def test_inference_mode_is_this_sides(opened):
    problem = opened(
        """
        import torch
        def mode(): return torch.is_inference_mode_enabled()
        def slope(x):
            with torch.enable_grad():
                x = x.clone().requires_grad_()
                (x * x).sum().backward()
            return x.grad
        def double(x): return 2 * x
        """
    )
    x = torch.tensor([1.5, 2.0])
    with torch.no_grad():
        assert torch.equal(problem.slope(x), 2 * x)
    with torch.inference_mode():
        assert problem.mode() is True
        assert torch.equal(problem.double(x), 2 * x)
        with pytest.raises(RuntimeError, match="does not require grad"):
            problem.slope(x)
    assert problem.mode() is False
    assert torch.equal(problem.slope(x), 2 * x)
