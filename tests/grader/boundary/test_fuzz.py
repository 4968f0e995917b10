"""Damaged answers of a worker: a test goes on or ends with an error, and nothing else is harmed.

`test_protocol.py` damages ten thousand frames; here frames are whole, and what they say is damaged.
"""

import copy
import mmap
from random import Random

import msgspec
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.boundary.connection import Connection
from grader.boundary.failures import WorkerFailure
from grader.boundary.protocol.wire import SIZE, Memory, read_response
from grader.boundary.proxy.caller import LoadedFile, RemoteProblem
from grader.boundary.recorder import SubmissionBudget
from grader.boundary.spawn import WorkerEnding, WorkerProcess, Workers
from grader.code.cost import counting
from grader.errors import InternalError
from grader.result import Status
from tests.grader.boundary import batched_calls as calls

EXAMPLES, EACH = 20, 15

SOURCE = """
from dataclasses import dataclass
from typing import NamedTuple
import torch
from torch import nn
@dataclass
class Config:
    width: int = 2
    name: str = "small"
class Pair(NamedTuple):
    k: torch.Tensor
    v: torch.Tensor
class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleDict({"first": Layer()})
        self.head = nn.Linear(2, 2)
        self.head.weight = self.layers.first.linear.weight
    def forward(self, x, past=None):
        y = self.head(self.layers.first(x)) + (past[0].k if past else 0)
        return y, [Pair(y, 2 * y)]
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("mask", torch.ones(2, dtype=torch.bool))
    def forward(self, x): return self.linear(x) * 2
def pair(x): return {"a": (x * 2, [1, 0.5, None, "text"]), "b": torch.Size([2])}
def broken(x): raise ValueError("no")
"""


def use(problem):
    """Do with a problem what tests do."""
    x = torch.ones(2, requires_grad=True)
    problem.pair(x)["a"][0].sum().backward()
    layer = problem.Layer()
    layer(x).sum().backward()
    layer.eval().linear(x)
    upstream = torch.tensor([2.0, 3.0])
    torch.autograd.grad(calls.answer(layer, x, upstream=upstream), x, upstream)
    for result in calls.answers(layer, [(x,), {"x": 2 * x}], upstreams=[upstream] * 2):
        torch.autograd.grad(result, x, upstream)
    with counting():
        model = problem.Model(problem.Config(2))
        assert model.config.name
        y, past = model(x)
        model(x, past)[1][0][1].sum().backward()
    try:
        problem.broken(x)
    except ValueError:
        problem.nothing  # noqa: B018


class NoProcess(WorkerProcess):
    """A worker that was never started."""

    pid = 0
    memory = Memory(mmap.mmap(-1, SIZE))

    def end(self, grace=0.0):
        return WorkerEnding(0)


class NoWorkers(Workers):
    def spawn(self, forbidden=(), *sources):
        return NoProcess()

    def close(self):
        pass


@pytest.fixture(scope="module")
def answers(sandbox):
    """What a true worker answers to all that `use` asks."""
    heard = []
    exchange = Connection.exchange

    def listen(self, do):
        answer, found = exchange(self, do)
        heard.append((msgspec.to_builtins(answer), [tensor.clone() for tensor in found]))
        return answer, found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "exchange", listen)
        problem = sandbox.open(SOURCE.encode())
        with pytest.raises(AttributeError):
            use(problem)
        problem.close()
    assert len(heard) >= 9
    return heard


VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2**40,
    2**64,
    0.5,
    "",
    "x",
    "Linear",
    "__class__",
    "weight",
    "forward",
]
VALUES += [[], [[]], [0, 1], {}, ["t", 0], ["t", 99], ["o", 1], ["out", 0]]
VALUES += [["t", 0, None, False, False, 7], ["t", 0, [5]], ["a", 0], ["m", "float32", [2]]]
VALUES += [["l", [["t", 0]]], ["x", "Thing"], ["x", "Thing", True], ["h", 0], ["h", 1, "Thing", []]]
VALUES += [
    ["h", 1, "Thing", [["a", 1]]],
    ["k", ["l", []], "Pair"],
    ["k", ["d", [["items", 1]]], "Pair"],
    ["k", ["u", [1]], "Pair", ["items"]],
    ["a", 1],
    [2**61, 0, 0],
]


def places(value, path=()):
    """Give the path of every value within a header."""
    inner = (
        value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    )
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


def damaged(header, random):
    """Return a header with one value replaced, removed or doubled."""
    header = copy.deepcopy(header)
    *path, last = random.choice(list(places(header)))
    owner = header
    for key in path:
        owner = owner[key]
    what = random.randrange(4)
    if what == 0:
        del owner[last]
    elif what == 1 and type(owner) is list:
        owner.append(copy.deepcopy(owner[last]))
    else:
        owner[last] = copy.deepcopy(random.choice(VALUES))
    return header


def replay(answers, random):
    """Return what stands in for `exchange`: the answers in order, one of them damaged if random."""
    broken, rest = random and random.randrange(len(answers)), iter(enumerate(answers))

    def exchange(self, do):
        number, (answer, found) = next(rest, (0, (None, [])))
        if answer is None:
            raise WorkerFailure(Status.CRASH, "there are no more answers")
        found = [tensor.clone() for tensor in found]
        told = damaged(answer, random) if number == broken else answer
        with self.checked():
            return read_response(msgspec.json.encode(told)), found

    return exchange


def ending():
    """Return how a use ends; code may switch gradients off for the test that it is called in."""
    try:
        with torch.enable_grad():  # as what runs a test does
            budget = SubmissionBudget(10, 10)
            use(RemoteProblem(LoadedFile(NoWorkers(), SOURCE.encode(), (), budget)))
    except Exception as error:
        return error
    return None


def state():
    """Return what of this process no answer may change."""
    return torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()


def test_answers_that_are_not_damaged_serve(answers, monkeypatch):
    """Else what follows would prove nothing."""
    monkeypatch.setattr(Connection, "exchange", replay(answers, None))
    assert str(ending()) == "module 'problem_' has no attribute 'nothing'"


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_a_damaged_answer_ends_a_test_at_most(answers, monkeypatch, seed):
    random, before = Random(seed), state()
    for _ in range(EACH):
        torch.manual_seed(0)
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "exchange", replay(answers, random))
            assert not isinstance(ending(), InternalError)
        assert state() == before
        # A worker can make this side draw, but not choose what comes then.
        drawn = torch.rand(1)
        torch.manual_seed(0)
        assert drawn in torch.cat([torch.rand(1) for _ in range(20)])
