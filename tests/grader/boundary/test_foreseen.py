"""Gradients that come with a call, and many calls in a message: the same as one after the other."""

import textwrap

import pytest
import torch
from torch import nn

from grader.boundary.connection import Connection
from grader.boundary.failures import WorkerFailure
from grader.boundary.protocol.wire import BackwardRequest, TensorValue
from grader.code.cost import counting
from grader.code.forbidden import ForbiddenCall
from grader.errors import Mismatch
from grader.result import Status
from grader.run.compare import gradients
from tests.grader.boundary.batched_calls import answer, answers

SOURCE = """
import torch
from torch import nn

def power(x, by=3): return x ** by
def pair(x): return x * 2, x * 3
def wide(x): return (x * 2).double()
def fixed(x): return x.detach() * 2

class Strict(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): raise ValueError("no way back")
def strict(x): return Strict.apply(x)

class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): return torch.softmax(g, -1)
def hidden(x): return Hidden.apply(x)

class Greedy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * 2
    @staticmethod
    def backward(ctx, g):
        ctx.x.data.zero_()
        return g
def greedy(x): return Greedy.apply(x)

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3, dtype=torch.float64)
    def forward(self, x): return self.linear(x)

last = []
def remembering(x):
    last.append(x * 2)
    last[0].data.add_(1)
    return last[-1]
def picky(x):
    if x.sum() > 5: raise ValueError("too much")
    return x * 2
"""


@pytest.fixture
def asked(monkeypatch):
    """What is asked of workers, one by one."""
    heard = []
    exchange = Connection.exchange

    def listen(self, do):
        heard.append("backward" if isinstance(do, BackwardRequest) else "call")
        return exchange(self, do)

    monkeypatch.setattr(Connection, "exchange", listen)
    return heard


@pytest.fixture
def here():
    """The same code in this process."""
    names = {}
    exec(textwrap.dedent(SOURCE), names)
    return names


def numbers(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).double().reshape(shape)


def test_value_and_gradient_come_in_a_message(opened, asked):
    problem, x, upstream = opened(SOURCE), numbers(2, 3).requires_grad_(), 7 - numbers(2, 3)
    problem.power(x)
    asked.clear()
    result = answer(problem.power, x.clone(), by=2, upstream=upstream)
    found = gradients(result, {"x": x}, upstream, "power(x)")
    assert torch.equal(found["x"], 2 * x.detach() * upstream)
    assert asked == ["call"]
    assert torch.equal(gradients(result, {"x": x}, upstream, "power(x)")["x"], found["x"])
    assert asked == ["call", "backward"]


def test_another_gradient_is_asked_for(opened, asked):
    problem, x = opened(SOURCE), numbers(3).requires_grad_()
    result = answer(problem.power, x, upstream=torch.ones(3).double())
    (found,) = torch.autograd.grad(result, x, 2 * torch.ones(3).double())
    assert torch.equal(found, 6 * x.detach() ** 2)
    upstream = torch.ones(3).double()
    result = answer(problem.power, x, upstream=upstream)
    upstream.mul_(2)  # as a test may
    (found,) = torch.autograd.grad(result, x, upstream)
    assert torch.equal(found, 6 * x.detach() ** 2)
    assert asked.count("backward") == 2


def test_no_gradient_comes_where_none_fits(opened):
    problem, x = opened(SOURCE), numbers(3).float().requires_grad_()
    for function in (problem.pair, problem.wide, problem.fixed):
        answer(function, x, upstream=torch.ones(3))
    assert not answer(problem.fixed, x, upstream=torch.ones(3)).requires_grad
    with torch.no_grad():
        assert not answer(problem.power, x, upstream=torch.ones(3)).requires_grad
    assert answer(problem.power, x.detach(), upstream=torch.ones(3)).tolist() == [1, 8, 27]
    (found,) = torch.autograd.grad(answer(problem.pair, x, upstream=torch.ones(3))[1].sum(), x)
    assert torch.equal(found, 3 * torch.ones(3))


def test_what_a_gradient_raises_is_told_when_it_is_asked_for(opened):
    problem, x = opened(SOURCE, forbidden=("softmax",)), numbers(3).requires_grad_()
    upstream = numbers(3)
    result = answer(problem.strict, x, upstream=upstream)
    assert torch.equal(result, 2 * x)
    with pytest.raises(ValueError, match="no way back"):
        torch.autograd.grad(result, x, upstream)
    result = answer(problem.hidden, x, upstream=upstream)
    assert torch.equal(answer(problem.power, x, upstream=upstream), x**3)
    assert problem.called is None
    with pytest.raises(ForbiddenCall):
        torch.autograd.grad(result, x, upstream)
    assert problem.called == "softmax"


def test_a_gradient_that_changes_an_argument_is_seen(opened):
    problem, x = opened(SOURCE), numbers(3)
    before = x.clone()
    answer(problem.greedy, x.requires_grad_(), upstream=numbers(3))
    assert not torch.equal(x, before)
    assert torch.allclose(x, before)


def test_a_gradient_that_is_to_be_counted_is_asked_for(opened, here):
    problem, x, upstream = opened(SOURCE), numbers(2, 2).requires_grad_(), numbers(2, 3)
    layer, costs = problem.Layer(), []
    for model in (layer, here["Layer"]()):
        for is_foreseen in (True, False):
            result = answer(model, x, upstream=upstream) if is_foreseen else model(x)
            with counting() as cost:
                torch.autograd.grad(result, [x, *model.parameters()], upstream)
            costs.append(cost.operations)
    assert len(set(costs)) == 1
    assert costs[0] > 0


def test_modules_take_many_calls(opened, here, asked):
    problem, own = opened(SOURCE), here["Layer"]()
    layer = problem.Layer()
    layer.load_state_dict(own.state_dict())
    inputs = [numbers(n, 2).requires_grad_() for n in (1, 2, 3)]
    upstreams = [10 - numbers(n, 3) for n in (1, 2, 3)]
    asked.clear()
    results = answers(layer, [(x.clone(),) for x in inputs], upstreams=upstreams)
    for x, upstream, result in zip(inputs, upstreams, results, strict=True):
        assert torch.allclose(result, own(x))
        found = gradients(result, {"x": x, "w": layer.linear.weight}, upstream, "layer(x)")
        right = gradients(own(x), {"x": x, "w": own.linear.weight}, upstream, "layer(x)")
        assert all(torch.allclose(found[name], right[name]) for name in right)
    assert asked == ["call"]


def test_hooks_of_a_test_see_each_of_many_calls(opened):
    layer, seen = opened(SOURCE).Layer(), []
    layer.register_forward_hook(lambda module, args, output: seen.append(output))
    assert len(answers(layer, [(numbers(1, 2),)] * 3)) == len(seen) == 3


def test_many_calls_by_name_and_modules_that_are_made(opened):
    problem = opened(SOURCE)
    found = answers(problem.power, [{"by": 2, "x": numbers(2)}, (numbers(2),)])
    assert [each.tolist() for each in found] == [[1, 4], [1, 8]]
    layers = answers(problem.Layer, [()] * 2)
    assert all(isinstance(layer, nn.Module) for layer in layers)
    assert not torch.equal(layers[0].linear.weight, layers[1].linear.weight)


def test_each_changed_argument_of_many_calls_is_marked(opened):
    problem = opened("def f(x):\n    if len(x) == 2: x.zero_()\n    return x + 1")
    arguments = [numbers(n) for n in (1, 2, 3, 2)]
    answers(problem.f, [(x,) for x in arguments])
    same = [torch.equal(x, numbers(len(x))) for x in arguments]
    assert same == [True, False, True, False]
    with pytest.raises(Mismatch, match="changed one of its arguments"):
        answers(problem.f, [(numbers(2) * torch.nan,) for _ in range(2)])


def test_results_of_many_calls_are_as_the_last_one_leaves_them(opened, here):
    problem, arguments = opened(SOURCE), [(numbers(2),), (numbers(2),)]
    found, right = answers(problem.remembering, arguments), answers(here["remembering"], arguments)
    assert [each.tolist() for each in found] == [each.tolist() for each in right]
    answers(problem.remembering, arguments)
    with pytest.raises(Mismatch, match="the result of an earlier call"):
        found[0].tolist()


def test_many_calls_end_with_the_first_that_raises(opened):
    arguments = [(numbers(n),) for n in (1, 2, 3, 4)]
    with pytest.raises(ValueError, match="too much") as caught:
        answers(opened(SOURCE).picky, arguments, upstreams=[x for (x,) in arguments])
    assert caught.value.student_place[0]


def test_a_foreseen_gradient_of_another_form_is_bad_output(opened, monkeypatch):
    problem, x = opened(SOURCE), numbers(3).requires_grad_()
    problem.power(x)
    exchange = Connection.exchange

    def lie(self, do):
        told, found = exchange(self, do)
        told.graphs[0].foreseen.values = [TensorValue(1)] * 2
        return told, found

    monkeypatch.setattr(Connection, "exchange", lie)
    result = answer(problem.power, x, upstream=numbers(3))
    assert torch.equal(result, x**3)
    with pytest.raises(WorkerFailure) as caught:
        torch.autograd.grad(result, x, numbers(3))
    assert caught.value.status is Status.BAD_OUTPUT


def test_a_call_has_one_graph(opened, monkeypatch):
    problem, exchange = opened(SOURCE), Connection.exchange

    def lie(self, do):
        told, found = exchange(self, do)
        told.graphs *= 2
        return told, found

    problem.power(numbers(3))
    monkeypatch.setattr(Connection, "exchange", lie)
    with pytest.raises(WorkerFailure) as caught:
        problem.power(numbers(3).requires_grad_())
    assert caught.value.status is Status.BAD_OUTPUT


def test_a_gradient_that_cannot_be_sent_harms_no_value(opened):
    problem = opened("""
        import torch
        from torch import nn
        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(4, 2, sparse=True)
            def forward(self, i): return self.table(i)
    """)
    table = problem.Table()
    result = answer(table, torch.tensor([1, 2]), upstream=torch.ones(2, 2))
    assert torch.equal(result, table.table.weight[1:3])
