"""Objects whose worker lies about them, and objects that fight back: nothing of this side's moves.

`tests/attacks` grades submissions that do some of this; here is what they might say in a message.
"""

import gc

import pytest
import torch

from grader.boundary.failures import WorkerFailure
from grader.boundary.protocol.wire import MAX_FIELDS, MAX_REFERENCES
from grader.result import Status
from tests.grader.boundary.conftest import LIES

LYING = f"""{LIES}
from typing import NamedTuple

class Thing:
    def __init__(self): self.number = 1
    def __eq__(self, other): return True
    def __hash__(self): return 1
class Pair(NamedTuple):
    one: int

def thing(): return Thing()
def pair(): return Pair(1)
def tensor(x): return x * 2
def number(thing): return thing.number
"""

OF_THINGS = {
    "a number below zero": "v[1] = -1",
    "a number beyond all": "v[1] = 1 << 62",
    "a number that is a text": "v[1] = '1'",
    "a number that is none": "v[1] = True",
    "a class without a name": "v[2] = ''",
    "a class with a long name": "v[2] = 'x' * 101",
    "a class that is no name": "v[2] = 'a\\nb'",
    "no fields": "v[3] = None",
    "fields that are none": "v[3] = {'a': 1}",
    "a field without a value": "v[3] = [['a']]",
    "a field that Python uses": "v[3] = [['__class__', 1]]",
    "a field that the reference uses": "v[3] = [['_caller', 1]]",
    "a field that is no name": "v[3] = [['a b', 1]]",
    "a field that is a list": "v[3] = [['a', ['l', []]]]",
    "a field that is a tensor": "v[3] = [['a', ['t', 0]]]",
    "a field that is an object": "v[3] = [['a', [*v]]]",
    "a field of 65 bits": "v[3] = [['a', 1 << 64]]",
    "a field that is too long": "v[3] = [['a', 'x' * 4001]]",
    "too many fields": f"v[3] = [[f'a{{i}}', i] for i in range({MAX_FIELDS + 1})]",
    "too many objects": f"told.values[0] = ['l', [v] * {MAX_REFERENCES + 1}]",
    "a method that is an object": "told.values[0] = ['h', 'x', 'Thing', []]",
}
OF_PAIRS = {
    "a class of tuples without a name": "v[2] = ''",
    "a class of tuples that is a list": "v[2] = ['Pair']",
    "a field that Python uses in a tuple": "v[3] = ['__class__']",
    "a field without a name": "v[3] = ['']",
    "too many names": "v[3] = ['a', 'b']",
    "names that are none": "v[3] = 'a'",
    "a size of a class": "told.values[0] = ['k', ['s', [1]], 'Pair']",
    "a number of a class": "told.values[0] = ['k', ['f', 'nan'], 'Pair']",
    "an object of a class of tuples": "told.values[0] = ['k', ['y', 'int64'], 'Pair']",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OF_THINGS, *OF_PAIRS])
def test_what_is_no_object_is_bad_output(opened, name):
    change = (OF_THINGS | OF_PAIRS)[name]
    source = f"{LYING}\ndef change(told):\n    v = told.values[0]\n    {change}\nlie(change)\n"
    problem = opened(source)
    with pytest.raises(WorkerFailure) as caught:
        (problem.thing if name in OF_THINGS else problem.pair)()
    assert caught.value.status is Status.BAD_OUTPUT


def test_numbers_that_collide_harm_the_worker_only(opened):
    """A reference that is dropped takes with it what the worker called by the same number."""
    problem = opened(
        f"{LYING}\ndef change(told):\n    v = told.values[0]\n"
        "    if v[0] == 'h': told.values[0] = ['l', [v, ['h', v[1], 'Other', v[3]]]]\nlie(change)\n"
    )
    one, other = problem.thing()
    assert (type(one).__name__, type(other).__name__) == ("Thing", "Other")
    assert problem.number(other) == 1
    del other
    gc.collect()
    with pytest.raises(WorkerFailure) as caught:
        problem.number(one)
    assert caught.value.status is Status.BAD_OUTPUT
    both = problem.thing()
    assert problem.number(both[0]) == 1


def test_an_object_that_equals_everything_equals_nothing_here(opened):
    thing = opened(LYING).thing()
    assert thing != 1
    assert thing != opened(LYING).thing()


@pytest.mark.slow
def test_thousands_of_objects_one_by_one_are_forgotten(opened):
    problem = opened(LYING + "def alive(): return sum(type(o) is Thing for o in gc.get_objects())")
    for _ in range(2000):
        problem.thing()
    problem.alive()
    assert problem.alive() == 0


REFUSING = """
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

class Left(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None): return torch.ones(3)

class Refuses(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dropout()
    def get_submodule(self, path): raise SystemExit(3)
    def forward(self, x): return x * 2

class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.training = object()

kept = []
def of_functorch(x):
    torch.vmap(lambda row: kept.append(row) or row)(x)
    return kept[-1]
def leaves_a_mode(x):
    Left().__enter__()
    return x
def double(x): return x * 2
"""


@pytest.mark.parametrize("way", ["Trained", "of_functorch"])
def test_what_can_not_be_told_ends_no_process(opened, way):
    problem = opened(REFUSING)
    args = () if way == "Trained" else (torch.ones(2, 2),)
    for _ in range(2):
        with pytest.raises(WorkerFailure) as failure:
            getattr(problem, way)(*args)
        assert failure.value.status is Status.BAD_OUTPUT
    assert torch.equal(problem.double(torch.ones(2)), torch.full((2,), 2.0))


def test_a_module_that_refuses_to_be_called_ends_no_process(opened):
    problem = opened(REFUSING)
    module, x = problem.Refuses(), torch.ones(2)
    with pytest.raises(WorkerFailure, match="SystemExit") as failure:
        module(x)
    assert failure.value.status is Status.BAD_OUTPUT
    assert torch.equal(problem.double(x), 2 * x)


def test_a_mode_that_is_left_on_is_no_crash(opened):
    with pytest.raises(WorkerFailure) as failure:
        opened(REFUSING).leaves_a_mode(torch.ones(2))
    assert failure.value.status is Status.BAD_OUTPUT
