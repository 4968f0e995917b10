"""Each unusual tensor that student code returns gets a status and a message.

Reading a tensor without memory would crash the worker, and the student would see
a message about a crash.
"""

import re

import pytest

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

def way(name, x): return (WAYS | RIGHT | FORMS)[name](x)
"""


def names(table):
    return re.findall(
        r'^    "(.+?)":', re.search(rf"^{table} = (.*?)^}}", ODD, re.M | re.S)[1], re.M
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", names("WAYS"))
def test_unusual_tensors_are_reported(graded, name):
    result = graded(f"{ODD}\ndef double(x): return way({name!r}, torch.ones(2, 2))")
    assert result.points == 0
    assert {test.status for test in result.tests} <= {
        *(Status.FAILED, Status.ERROR, Status.BAD_OUTPUT, Status.MEMORY)
    }
    assert all(test.message for test in result.tests)


@pytest.mark.slow
@pytest.mark.parametrize("name", names("RIGHT"))
def test_subclasses_with_ordinary_data_are_accepted(graded, name):
    assert graded(f"{ODD}\ndef double(x): return way({name!r}, x + x)").passed


@pytest.mark.slow
@pytest.mark.parametrize("name", names("FORMS"))
def test_tensors_without_ordinary_numbers_have_the_wrong_form(graded, name):
    result = graded(f"{ODD}\ndef double(x): return way({name!r}, (x + x).float())")
    assert {test.status for test in result.tests} == {Status.FAILED}
