"""Forbidden functions are removed from a worker."""

from pathlib import Path

import pytest

from grader.sandbox.failures import WorkerFailure
from tests.grader.sandbox.asking import Asked


def test_forbidden_calls_are_reported_even_if_they_are_caught(ask, sandbox):
    source = """
        import torch
        def f(x):
            try:
                return torch.softmax(x, -1)
            except Exception:
                return x
        """
    expression = "problem.f(torch.zeros(2)).tolist()"
    with Asked(sandbox, source, expression, "1", forbidden=("softmax",)) as asked:
        assert asked.next() == [0, 0]
        assert asked.called == ["softmax"]
        assert asked.next() == 1
        assert asked.called == []
    assert ask(source, expression) == [0.5, 0.5]


LYING = """
import gc
import warnings
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import _disable_current_modes

gc.unfreeze()
functions = [found for found in gc.get_objects() if type(found).__name__ == "function"]
(removal,) = [found.__globals__ for found in functions if found.__name__ == "refuse_later"]
modules = [removal, removal["refuse"].__globals__]

warnings.simplefilter("error")
for module in modules:
    for name in list(module):
        if not name.startswith("__"):
            module[name] = lambda *_: None

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


def test_without_a_guard_forbidden_functions_are_still_missing(ask, compiler):
    """Code that switches off torch's hooks still can't call forbidden functions."""
    forbidden = ("softmax", "log_softmax", "scaled_dot_product_attention")
    gradient = "x.requires_grad_()).sum().backward() or x.grad.abs().max().item()"
    ways, slope = ask(
        LYING,
        "problem.ways_that_answer()",
        f"[problem.f({gradient} for x in [torch.randn(2, 3)]]",
        forbidden=forbidden,
    )
    assert ways == []
    assert slope[0] < 1e-6
    everything = set(ask(LYING, "problem.ways_that_answer()"))
    assert everything >= {"torch", "kernel", "vmap", "mkldnn", "attention", "many heads"}


def test_a_forbidden_call_in_a_call_of_torchs_own_layer(ask):
    source = "from torch import nn\ndef f(): return nn.Softmax(-1)"
    layer, called = ask(source, "problem.f()", "problem.f()(torch.ones(2))", forbidden=("softmax",))
    assert layer == "Softmax(dim=-1)"
    assert called == ("ForbiddenCall", "softmax")


F_OF_ZEROS = "problem.f(torch.zeros(2)).tolist()"


def test_a_file_may_compare_itself_with_torch_at_import(ask):
    source = """
        import torch
        def f(x): return x.exp() / x.exp().sum()
        assert torch.allclose(f(torch.ones(3)), torch.softmax(torch.ones(3), 0))
        """
    assert ask(source, F_OF_ZEROS, forbidden=("softmax",)) == [0.5, 0.5]


EXPORTED = """
import sys

def broken():
    modules = [m for name, m in sys.modules.items() if name.partition(".")[0] == "torch"]
    names = [(m, name) for m in modules for name in vars(m).get("__all__", ())]
    return [f"{m.__name__}.{name}" for m, name in names if not hasattr(m, name)]
"""


def test_a_star_import_has_all_remaining_names(ask):
    source = (
        EXPORTED
        + """
from torch import *
from torch.nn.functional import *

def f(x): return x.exp() / x.exp().sum()
        """
    )
    found, broken = ask(source, F_OF_ZEROS, "problem.broken()", forbidden=("softmax", "optim"))
    assert found == [0.5, 0.5]
    here = {}
    exec(EXPORTED, here)
    assert set(broken) <= set(here["broken"]())  # torch's own mistakes


OTHER_ROADS = (Path(__file__).parent / "other_roads.py").read_text(encoding="utf-8")

SOFTMAX = ("softmax", "softmin", "log_softmax", "logsumexp")
ATTENTION = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")
BLOCK = ("gelu", "layer_norm", "group_norm", "instance_norm", "batch_norm", "rms_norm")
KINDS = {SOFTMAX: "softmax", ATTENTION: "attention", BLOCK: "block"}

KEYS = (
    *("CompositeImplicitAutograd", "CompositeExplicitAutograd", "FuncTorchBatched", "AutocastCPU"),
    *("CompositeExplicitAutogradNonFunctional", "Meta", "Lazy", "XLA", "XPU", "PrivateUse1"),
    *("SparseCPU", "QuantizedCPU", "NestedTensorCPU", "AutogradOther", "AutogradCPU", "Autograd"),
    *("ADInplaceOrView", "Functionalize", "Conjugate"),
)


@pytest.fixture(scope="module")
def names_of_roads(ask):
    return ask(OTHER_ROADS, "problem.names()")


def is_open(ask, forbidden, way, key="CPU"):
    """Return whether a forbidden function can be called in one of the indirect ways."""
    try:
        found = ask(OTHER_ROADS, f"problem.works({way!r}, {key!r})", forbidden=forbidden)
    except WorkerFailure:
        return False  # the call ended the worker
    assert isinstance(found, bool), found
    return found


@pytest.fixture(
    params=[pytest.param(True, marks=pytest.mark.slow), False],
    ids=["compiler loaded", "compiler not loaded"],
)
def compiler(request, monkeypatch):
    """Load torch's compiler in all workers, or in no worker, for all files."""
    monkeypatch.setattr("grader.sandbox.spawn.may_want_compiler", lambda source: request.param)


@pytest.mark.slow
@pytest.mark.parametrize("forbidden", KINDS, ids=KINDS.values())
def test_other_ways_to_forbidden_functions_are_closed(ask, forbidden, compiler, names_of_roads):
    ways = [way for way in names_of_roads if way.startswith(KINDS[forbidden])]
    assert len(ways) >= (7 if forbidden is BLOCK else 8)
    assert [way for way in ways if is_open(ask, forbidden, way)] == []


@pytest.mark.slow
def test_the_ways_work_if_nothing_is_forbidden(ask):
    key = "CompositeImplicitAutograd"
    working = f"[way for way in problem.names() if problem.works(way, {key!r})]"
    found = set(ask(OTHER_ROADS, working))
    assert found >= {
        *("softmax: transform", "softmax: transform reloaded", "softmax: transform of a simplex"),
        *("softmax: redispatched", "softmax: library", "softmax: scripted", "softmax: quantised"),
        *("attention: redispatched", "attention: redispatched math", "attention: library"),
        *("attention: quantizable", "attention: reloaded", "attention: executed"),
        *("attention: function of code", "attention: code of a function", "attention: ctypes"),
        *("block: convolution", "block: norm of torch in Python", "block: norm of MKL-DNN"),
    }


@pytest.mark.parametrize("forbidden", [SOFTMAX, ATTENTION], ids=["softmax", "attention"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.slow
def test_choosing_the_dispatch_key_finds_no_function(ask, forbidden, key, names_of_roads):
    road = f"{KINDS[forbidden]}: redispatched"
    ways = [way for way in names_of_roads if way.startswith(road)]
    assert len(ways) >= 2
    assert [way for way in ways if is_open(ask, forbidden, way, key)] == []


def test_failing_comparisons_at_import_are_skipped(ask):
    source = """
        from __future__ import annotations
        import torch
        def f(x: NoSuchName): return x.exp() / x.exp().sum()
        expected = torch.softmax(torch.ones(3), 0)
        if not torch.allclose(f(torch.ones(3)), expected):
            print("wrong")
        difference = expected - 1
        print(difference)
        g = f
        """
    assert ask(source, F_OF_ZEROS.replace("f(", "g(", 1), forbidden=("softmax",)) == [0.5, 0.5]


def test_a_different_missing_name_is_still_an_error(sandbox):
    source = "import torch\nx = torch.softmax(torch.ones(1), 0)\ntypo + 1"
    with Asked(sandbox, source, forbidden=("softmax",)) as asked:
        assert asked.error == ("NameError", "name 'typo' is not defined")
