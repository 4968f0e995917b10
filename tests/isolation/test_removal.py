"""Forbidden functions are taken away from a worker, whatever its code does."""

import pytest
import torch
from torch import nn

from grader.forbidden import ForbiddenCall


def test_forbidden_calls_are_reported_even_when_swallowed(opened):
    source = """
        import torch
        def f(x):
            try:
                return torch.softmax(x, -1)
            except Exception:
                return x
        """
    problem = opened(source, ("softmax",))
    with pytest.raises(ForbiddenCall, match="^softmax$"):
        problem.f(torch.ones(2))
    assert problem.called == "softmax"
    assert torch.equal(opened(source).f(torch.zeros(2)), torch.full((2,), 0.5))


LYING = """
import gc
import warnings
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import _disable_current_modes

(worker,) = [found for found in gc.get_objects() if type(found).__name__ == "Worker"]
Worker = type(worker)
forbidden = Worker._load.__globals__["removal"].__globals__

warnings.simplefilter("error")
ANSWER = Worker.answer

def lie(self, header, tensors):
    told, tensors = ANSWER(self, header, tensors)
    return told | {"called": None}, tensors

Worker.answer = lie
for name in ("_replace_kernels", "_refused", "_find"):
    assert name in forbidden
    forbidden[name] = lambda *_: None

WAYS = {
    "torch": lambda x: torch.softmax(x, -1),
    "functional": lambda x: F.softmax(x, -1),
    "with a gradient": lambda x: x.detach().requires_grad_().softmax(-1),
    "half": lambda x: x.half().softmax(-1),
    "out": lambda x: torch.softmax(x, -1, out=torch.empty(2, 2)),
    "kernel": lambda x: torch.ops.aten._softmax(x, -1, False),
    "vmap": lambda x: torch.vmap(lambda row: row.softmax(-1))(x),
    "mkldnn": lambda x: x.to_mkldnn().softmax(-1),
    "sparse": lambda x: torch.sparse.softmax(x.to_sparse(), -1),
    "masked": lambda x: torch._masked_softmax(x, torch.zeros(2, 2, dtype=torch.bool)),
    "cross entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 1])),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "many heads": lambda x: torch.nn.MultiheadAttention(2, 1)(x, x, x),
}

def ways_that_answer():
    found = []
    for name, way in WAYS.items():
        try:
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                way(torch.ones(2, 2))
            found.append(name)
        except Exception:
            pass
    return found

def f(x):
    return x.exp() / x.exp().sum(-1, keepdim=True)
"""


def test_without_a_guard_there_is_still_nothing_to_call(opened):
    """Worker and hooks are in the student's hands here, and all that is forbidden is gone."""
    problem = opened(LYING, ("softmax", "log_softmax", "scaled_dot_product_attention"))
    assert problem.ways_that_answer() == []
    x = torch.randn(2, 3, requires_grad=True)
    problem.f(x).sum().backward()
    everything = set(opened(LYING).ways_that_answer())
    assert everything >= {"torch", "kernel", "vmap", "mkldnn", "attention", "many heads"}


def test_a_forbidden_call_in_a_call_of_torchs_own_layer(opened):
    problem = opened("from torch import nn\ndef f(): return nn.Softmax(-1)", ("softmax",))
    layer = problem.f()
    assert isinstance(layer, nn.Softmax)
    with pytest.raises(ForbiddenCall):
        layer(torch.ones(2))


def test_at_import_a_file_may_compare_itself_with_torch(opened):
    problem = opened(
        """
        import torch
        def f(x): return x.exp() / x.exp().sum()
        assert torch.allclose(f(torch.ones(3)), torch.softmax(torch.ones(3), 0))
        """,
        ("softmax",),
    )
    assert torch.equal(problem.f(torch.zeros(2)), torch.full((2,), 0.5))
