"""Tensors that are none, or have no numbers: each ends with a status and a sentence, none in harm.

A tensor without memory must not be read: the worker's process would end, and the student would be
told of a crash.
"""

import pytest
import torch

from grader.boundary.failures import WorkerFailure
from grader.errors import Mismatch
from grader.result import Status

ODD = """
import gc
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
    def __init__(self, x):
        self.x = x
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(a.x if isinstance(a, Wrapper) else a for a in args), **(kwargs or {}))

class Raises(Wrapper):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None): raise RuntimeError("no")

class Exits(Wrapper):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None): raise SystemExit(0)

class Stays(Wrapper):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None): return Stays(args[0].x)

def double(x): return x * 2
def resized(tensor, size):
    tensor.untyped_storage().resize_(size)
    return tensor
def fake_parameters():
    with FakeTensorMode(): return nn.Linear(2, 2)
def with_buffer(buffer):
    module = nn.Module()
    module.register_buffer("buffer", buffer)
    return module
def leaked(transform, x):
    kept = []
    transform(lambda row: kept.append(row) or row.sum())(x)
    return kept[0]

WAYS = {
    # Nothing that could be read
    "fake": lambda x: FakeTensorMode().from_tensor(x),
    "fake in a list": lambda x: [x, FakeTensorMode().from_tensor(x)],
    "module of fakes": lambda x: fake_parameters(),
    "functional": lambda x: torch._to_functional_tensor(x),
    "wrapper around nothing": lambda x: torch.Tensor._make_wrapper_subclass(Wrapper, (2, 2)),
    "huge wrapper": lambda x: torch.Tensor._make_wrapper_subclass(Wrapper, (1 << 30, 1 << 30)),
    "wrapper that raises": Raises,
    "wrapper that exits": Exits,
    "wrapper of wrappers": Stays,
    "masked": lambda x: torch.masked.masked_tensor(x.detach(), x > 0),
    "jagged": lambda x: torch.nested.nested_tensor([x[0], x[1, :1]], layout=torch.jagged),
    "nested": lambda x: torch.nested.nested_tensor([x[0], x[1, :1]]),
    "leaked from vmap": lambda x: leaked(torch.vmap, x),
    "leaked from grad": lambda x: leaked(torch.func.grad, x),
    # No numbers any more
    "no storage": lambda x: resized(x * 2, 0),
    "no storage, turned": lambda x: resized(torch.ones(3, 2).mT, 0),
    "half a storage": lambda x: resized(torch.ones(2, 2), 8),
    "half a storage, turned": lambda x: resized(torch.ones(3, 2).mT, 8),
    "no storage for a gradient": lambda x: resized(torch.ones(2, 2).requires_grad_(), 0),
    "buffer without storage": lambda x: with_buffer(resized(torch.ones(2, 2), 0)),
    # Not dense
    "sparse": lambda x: x.to_sparse(),
    "sparse rows": lambda x: x.to_sparse_csr(),
    "of MKL-DNN": lambda x: x.to_mkldnn(),
    "sparse buffer": lambda x: with_buffer(x.detach().to_sparse()),
    # Too much
    "65 dimensions": lambda x: torch.ones([1] * 65),
    "40 dimensions": lambda x: x[0, 0].expand([2] * 40),
    "expanded": lambda x: x[0, 0].expand(1 << 28),
    "expanded far": lambda x: x[0, 0].expand(1 << 31, 1 << 31),
    "expanded without numbers": lambda x: x.to("meta")[0, 0].expand(1 << 31, 1 << 31),
    "no entries, far": lambda x: torch.empty(0, 1 << 62),
    # Other dtypes
    "float8": lambda x: x.to(torch.float8_e4m3fnuz),
    "bits": lambda x: torch.empty(2, dtype=torch.bits8),
    # Not yet
    "lazy": lambda x: nn.LazyLinear(2),
    "lazy parameter": lambda x: nn.UninitializedParameter(),
    "lazy buffer": lambda x: nn.UninitializedBuffer(),
}
RIGHT = {
    "compiled": lambda x: torch.compile(lambda x: x * 1)(x),
    "negative": lambda x: torch._neg_view(-x),
    "negative part": lambda x: torch.complex(x, -x).conj().imag,
    "turned": lambda x: x.mT.contiguous().mT,
    "subclass": lambda x: x.as_subclass(type("Mine", (torch.Tensor,), {})),
    "buffer": nn.Buffer,
    "of inference": torch.inference_mode()(lambda x: x * 1),
}
FORMS = {
    "on meta": lambda x: x.to("meta"),
    "quantised": lambda x: torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.qint8),
    "complex64": lambda x: torch.complex(x, x),
    "conjugated": lambda x: torch.complex(x, x).conj(),
    "complex32": lambda x: torch.complex(x.half(), x.half()),
    "float8_e5m2": lambda x: x.to(torch.float8_e5m2),
    "uint16": lambda x: x.to(torch.uint16),
}

def wraps(x): return Wrapper(x)
def way(name, x): return (WAYS | RIGHT | FORMS)[name](x)
def names(): return [*WAYS], [*RIGHT], [*FORMS]

def zeros(x): return torch._efficientzerotensor(x.shape).requires_grad_(x.requires_grad)

kept = []
def keeps(x):
    kept.append(x * 2)
    return kept[-1]
def shrinks(size):
    resized(kept[-1], size)

class Replaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buffer", torch.ones(2, 2))
    def forward(self, name, x):
        self.buffer = WAYS[name](x)

class Odd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, name):
        ctx.name = name
        return x * 2
    @staticmethod
    def backward(ctx, upstream):
        return WAYS[ctx.name](upstream), None
def with_odd_gradient(x, name): return Odd.apply(x, name)
"""


@pytest.fixture(scope="module")
def names(sandbox):
    problem = sandbox.open(ODD.encode())
    yield problem.names()
    problem.close()


def is_unharmed(problem):
    x = torch.ones(2, 2)
    return torch.equal(problem.double(x), 2 * x) and torch.equal(problem.double(x), 2 * x)


def refused(call):
    """Return why an answer to a call can't be read; it must not be a crash."""
    with pytest.raises(WorkerFailure) as failure:
        call()
    assert failure.value.status is Status.BAD_OUTPUT
    return str(failure.value)


@pytest.mark.parametrize("requires_grad", [False, True], ids=["", "in a graph"])
def test_what_is_no_plain_tensor_is_bad_output(opened, names, requires_grad):
    problem, x = opened(ODD), torch.ones(2, 2, requires_grad=requires_grad)
    for name in names[0]:
        said = refused(lambda name=name: problem.way(name, x))
        assert "come back" in said or "came back" in said, name
        assert is_unharmed(problem), name


SENTENCES = {
    "fake": "a tensor of the class FakeTensor whose numbers can't be read",
    "no storage": "a tensor whose numbers can't be read",
    "leaked from grad": "a tensor of torch.func that was kept for too long",
    "lazy": "a tensor of a lazy layer (LazyLinear), which has no entries before its first call",
    "nested": "a nested tensor",
    "sparse": "a tensor that isn't a plain dense one on the CPU",
    "expanded far": "it is too large",
    "65 dimensions": "a tensor with 65 dimensions",
    "bits": "a tensor of torch.bits8",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_sentence_says_what_it_is(opened, name):
    said = refused(lambda: opened(ODD).way(name, torch.ones(2, 2)))
    assert said.endswith(f": {SENTENCES[name]}.")


def test_what_is_plain_beneath_is_a_right_answer(opened, names):
    problem, x = opened(ODD), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for name in names[1]:
        found = problem.way(name, x)
        assert torch.equal(found, x), name
        assert is_unharmed(problem), name


def test_a_wrapper_is_what_it_wraps_or_no_tensor(opened):
    """That depends on the version of torch."""
    problem, x = opened(ODD), torch.ones(2, 2)
    try:
        found = problem.wraps(x)
    except WorkerFailure:
        assert "Wrapper" in refused(lambda: problem.wraps(x))
    else:
        assert torch.equal(found, x)
    assert is_unharmed(problem)


def test_of_what_has_other_numbers_only_the_form_is_seen(opened, names):
    problem, x = opened(ODD), torch.ones(2, 2)
    for name in names[2]:
        found = problem.way(name, x)
        assert found.shape == x.shape
        assert repr(found)
        with pytest.raises(Mismatch, match="meta" if name == "on meta" else str(found.dtype)):
            found + 1
        assert is_unharmed(problem), name


@pytest.mark.parametrize("requires_grad", [False, True])
def test_zeros_that_take_no_memory_are_zeros(opened, requires_grad):
    problem, x = opened(ODD), torch.ones(2, 2, requires_grad=requires_grad)
    for _ in range(2):
        assert torch.equal(problem.zeros(x), torch.zeros(2, 2))


@pytest.mark.parametrize("size", [0, 8])
def test_a_result_whose_memory_goes_was_changed(opened, size):
    problem = opened(ODD)
    result = problem.keeps(torch.ones(64, 64))
    problem.shrinks(size)
    with pytest.raises(Mismatch, match="earlier call"):
        torch.equal(result, torch.full((64, 64), 2.0))
    assert is_unharmed(problem)


@pytest.mark.parametrize("name", ["fake", "no storage", "half a storage", "sparse", "nested"])
def test_a_buffer_that_becomes_odd(opened, name):
    problem = opened(ODD)
    module = problem.Replaced()
    refused(lambda: module(name, torch.ones(2, 2)))
    assert is_unharmed(problem)


@pytest.mark.parametrize("name", ["fake", "no storage", "half a storage", "sparse", "functional"])
def test_a_gradient_that_is_odd(opened, name):
    problem, x = opened(ODD), torch.ones(2, 2, requires_grad=True)
    result = problem.with_odd_gradient(x, name)
    with pytest.raises((WorkerFailure, RuntimeError)) as failure:
        result.sum().backward()
    assert getattr(failure.value, "status", Status.ERROR) is not Status.CRASH
    assert is_unharmed(problem)
