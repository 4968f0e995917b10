"""What acts like the student's module: the same answers as in process, and loud refusals."""

import copy
import gc
import math
import pickle

import pytest
import torch
from torch import nn

from grader.errors import CannotLoad, Mismatch
from grader.forbidden import ForbiddenCall
from grader.isolation import WorkerFailure
from grader.result import Status
from grader.testing.compare import check
from grader.testing.diagnose import attempt

LAYER = """
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, n_embd=4, bias=True, dropout=0.5):
            super().__init__()
            self.n_embd = n_embd
            self.query = nn.Linear(n_embd, n_embd, bias=bias)
            self.drop = nn.Dropout(dropout)
            self.register_buffer("mask", torch.ones(3, 3, dtype=torch.bool).tril())
            self.register_buffer("scratch", torch.zeros(2), persistent=False)

        def forward(self, x):
            return self.drop(self.query(x))

        def doubled(self, x):
            return 2 * self.query(x)
    """


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


def test_what_the_argument_is_in_memory_is_kept(opened):
    problem = opened("def rows(x): return x.view(-1)")
    assert problem.rows(torch.ones(2, 3)).shape == (6,)
    with pytest.raises(RuntimeError, match="view size"):
        problem.rows(torch.ones(2, 3).T)


# Modules


def test_modules_show_their_parameters_and_layers(opened):
    layer = opened(LAYER).Layer(6, bias=False)
    assert type(layer).__name__ == "Layer"
    assert isinstance(layer.query, nn.Linear)
    assert type(layer.query).__name__ == "Linear"
    assert (layer.query.in_features, layer.query.bias, layer.n_embd) == (6, None, 6)
    assert [name for name, _ in layer.named_parameters()] == ["query.weight"]
    assert [name for name, _ in layer.named_buffers()] == ["mask", "scratch"]
    assert list(layer.state_dict()) == ["mask", "query.weight"]
    assert layer.mask.dtype == torch.bool
    assert isinstance(layer.drop, nn.Dropout)
    assert layer.drop.p == 0.5


def test_weights_set_here_are_used_there(opened):
    layer = opened(LAYER).Layer(4).eval()
    x = torch.randn(2, 4)
    with torch.no_grad():
        layer.query.weight.copy_(torch.eye(4))
        layer.query.bias.fill_(1)
    assert torch.equal(layer(x), x + 1)
    layer.query.weight.data.mul_(2)  # moves no version counter
    assert torch.equal(layer(x), 2 * x + 1)
    layer.load_state_dict(layer.state_dict() | {"query.bias": torch.zeros(4)})
    assert torch.equal(layer(x), 2 * x)
    assert torch.equal(layer.doubled(x), 4 * x)
    layer.query.weight = nn.Parameter(torch.zeros(4, 4))
    assert torch.equal(layer(x), torch.zeros(2, 4))


def test_modules_move_to_another_dtype(opened):
    layer = opened(LAYER).Layer(4).double().eval()
    assert layer(torch.randn(2, 4).double()).dtype == torch.float64
    assert layer.mask.dtype == torch.bool


def test_train_eval_and_settings_of_layers_reach_the_worker(opened):
    layer = opened(LAYER).Layer(50, dropout=0.5)
    x = torch.ones(20, 50)
    assert (layer(x) == 0).any()
    assert not (layer.eval()(x) == 0).any()
    layer.train().drop.p = 1.0
    assert (layer(x) == 0).all()


def test_gradients_of_weights(opened):
    layer = opened(LAYER).Layer(4).double().eval()
    twin = nn.Linear(4, 4).double()
    twin.load_state_dict(layer.query.state_dict())
    x = torch.randn(3, 4).double().requires_grad_()
    y = x.detach().clone().requires_grad_()
    upstream = torch.randn(3, 4).double()
    layer(x).backward(upstream)
    twin(y).backward(upstream)
    torch.testing.assert_close(layer.query.weight.grad, twin.weight.grad)
    torch.testing.assert_close(x.grad, y.grad)
    layer.requires_grad_(False)
    assert not layer(y.detach()).requires_grad


def test_an_optimizer_trains_a_remote_module(opened):
    layer = opened(LAYER).Layer(4, dropout=0.0)
    x = torch.randn(16, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.3)
    losses = []
    for _ in range(5):
        loss = (layer(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_modules_within_modules_and_shared_weights(opened):
    problem = opened(
        """
        from torch import nn
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.own = nn.Linear(2, 2)
            def forward(self, x):
                return self.own(x) + 1
        class Wide(nn.Linear):
            def forward(self, x):
                return super().forward(x) * 3
        class Many(nn.Module):
            def __init__(self):
                super().__init__()
                self.heads = nn.ModuleList([Head(), Head()])
                self.heads[1].own.weight = self.heads[0].own.weight
                self.wide = Wide(2, 2)
            def forward(self, x):
                return self.wide(sum(head(x) for head in self.heads))
        """
    )
    many, x = problem.Many(), torch.randn(3, 2)
    assert many.heads[0].own.weight is many.heads[1].own.weight
    assert isinstance(many.wide, nn.Linear)
    inner = sum(head.own(x) + 1 for head in many.heads)
    assert torch.equal(many.heads[0](x), many.heads[0].own(x) + 1)
    torch.testing.assert_close(
        many(x), 3 * nn.functional.linear(inner, many.wide.weight, many.wide.bias)
    )


def test_layers_of_torch_run_in_the_worker(opened):
    """Whatever the student returns: its settings and weights are here, its forward isn't."""
    problem = opened(
        """
        from torch import nn
        def layers():
            return nn.ModuleList([nn.Linear(2, 2), nn.Dropout(1.0, inplace=True), nn.Identity()])
        """
    )
    layers, x = problem.layers(), torch.randn(3, 2, requires_grad=True)
    assert [type(layer).__name__ for layer in layers] == ["Linear", "Dropout", "Identity"]
    assert len(layers) == 3
    assert repr(layers[1]) == "Dropout(p=1.0, inplace=True)"
    torch.testing.assert_close(layers[0](x), nn.functional.linear(x, *layers[0].parameters()))
    layers[0](x).sum().backward()
    assert layers[0].weight.grad is not None
    before = x.detach().clone()
    assert not layers[1](x.detach()).any()
    assert not torch.equal(x, before)  # the change is noticed
    torch.testing.assert_close(x, before)
    assert torch.equal(layers.eval()[1](x), x)
    layers.train()[1].inplace = False
    assert torch.equal(layers[1](x), torch.zeros(3, 2))
    with pytest.raises(TypeError, match="isn't supported"):
        layers[0].forward = None


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
    assert attempt(problem.f, 2) == "returned a shape without numbers"


def test_buffers_made_in_forward_are_seen(opened):
    problem = opened(
        """
        import torch
        from torch import nn
        class Late(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.zeros(1))
            def forward(self, x):
                self.mask = torch.ones(len(x))
                return x * 1
        """
    )
    module = problem.Late()
    before = module.mask
    module(torch.ones(3))
    assert torch.equal(module.mask, torch.ones(3))
    assert torch.equal(before, torch.zeros(1))


def test_what_is_forgotten_here_is_forgotten_there(opened):
    problem = opened(
        LAYER
        + """
    import gc
    def alive():
        return sum(isinstance(thing, Layer) for thing in gc.get_objects())
    """
    )
    layers = [problem.Layer() for _ in range(3)]
    assert problem.alive() == 3
    del layers
    gc.collect()
    problem.alive()
    assert problem.alive() == 0


# The random state


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


# What a call may not change


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_changed_argument_is_marked(opened, dtype):
    """`torch.equal` sees it, as in process; but none of the student's numbers has come here."""
    problem = opened("def f(x):\n    x.zero_()\n    return x")
    x = torch.tensor([-math.inf, 0.0, -3.0, 1e4], dtype=dtype)
    before = x.clone()
    problem.f(x)
    assert not torch.equal(x, before)
    torch.testing.assert_close(x, before, rtol=3 * torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("unchanged", [torch.tensor([True]), torch.ones(2, dtype=torch.int64)])
def test_a_changed_argument_that_cannot_be_marked_is_an_error(opened, unchanged):
    """A truth value or a whole number has no last place to move."""
    problem = opened("def f(a, x):\n    x.zero_()\n    return x\ndef g(*all): all[1].zero_()")
    x = unchanged.clone()
    with pytest.raises(Mismatch, match="Your code changed its argument x"):
        problem.f(None, x)
    with pytest.raises(Mismatch, match="Your code changed its argument 2"):
        problem.g(x.clone(), x)
    assert torch.equal(x, unchanged)


def test_a_result_that_a_later_call_changes_is_an_error(opened):
    problem = opened(
        """
        import torch
        kept = torch.zeros(2)
        def f(x): return kept.copy_(x)
        """
    )
    first = problem.f(torch.ones(2))
    with pytest.raises(Mismatch, match="the result of an earlier call changed"):
        problem.f(torch.zeros(2))
    assert torch.equal(first, torch.ones(2))


def test_weights_that_a_call_changes_are_an_error(opened):
    spoil = """
        def spoil(self, x):
            self.query.weight.data.zero_()
            return x
    """
    layer = opened(LAYER + spoil).Layer(4)
    before = layer.query.weight.clone()
    with pytest.raises(Mismatch, match=r"changed its own weights \(query.weight\)"):
        layer.spoil(torch.ones(1))
    assert torch.equal(layer.query.weight, before)


# Exceptions


@pytest.mark.parametrize("kind", ["ValueError", "IndexError", "KeyError", "ZeroDivisionError"])
def test_exceptions_come_back_by_their_built_in_type(opened, kind):
    problem = opened(f"def f(): raise {kind}('too bad')")
    expected = eval(kind)
    with pytest.raises(expected, match="too bad") as caught:
        problem.f()
    assert type(caught.value).__name__ == kind
    assert str(caught.value) == str(expected("too bad"))
    assert caught.value.student_place == (1, "f", f"def f(): raise {kind}('too bad')")


def test_the_student_sees_where_it_happened(opened):
    problem = opened(
        "class A:\n    def f(self):\n        return 1 / 0\ndef g():\n    return A().f()"
    )
    with pytest.raises(ZeroDivisionError) as caught:
        problem.g()
    last = caught.traceback[-1]
    assert (last.lineno + 1, last.frame.code.raw.co_qualname) == (3, "A.f")


def test_own_exceptions_are_known_by_name_and_ancestor(opened):
    problem = opened("class Mine(ValueError): pass\ndef f(): raise Mine('x' * 10000)")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        problem.f()
    assert type(caught.value).__name__ == "Mine"
    assert len(str(caught.value)) == 4000


@pytest.mark.parametrize(
    "what", ["SystemExit(0)", "KeyboardInterrupt()", "GeneratorExit()", "BaseException('x')"]
)
def test_exceptions_that_would_end_something_are_ordinary_errors(opened, what):
    problem = opened(f"def f(): raise {what}")
    with pytest.raises(RuntimeError) as caught:
        problem.f()
    assert type(caught.value).__name__ == what.split("(")[0]


def test_an_exception_that_cannot_be_printed(opened):
    problem = opened(
        """
        class Bad(ValueError):
            def __str__(self): raise SystemExit
        def f(): raise Bad
        def g(): raise ValueError(chr(27) + "[2J")
        """
    )
    with pytest.raises(ValueError):  # noqa: PT011
        problem.f()
    with pytest.raises(ValueError, match="\ufffd"):
        problem.g()


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
import warnings
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import _disable_current_modes
from grader import forbidden
from grader.isolation.worker import serving

warnings.simplefilter("error")
ANSWER = serving.Worker.answer

def lie(self, header, tensors):
    told, tensors = ANSWER(self, header, tensors)
    return told | {"called": None}, tensors

serving.Worker.answer = lie
forbidden._replace_kernels = forbidden._refused = forbidden._find = lambda *_: None

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


# Files that can't be used


@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        ("def f(:\n  pass", Status.ERROR, r"can't be read as Python: .*\n  line 1: def"),
        ("x = 1\nraise ValueError('no')", Status.ERROR, r"ValueError: no\n  problem.py, line 2: "),
        ("raise NotImplementedError", Status.NOT_IMPLEMENTED, "stops before it is read to its end"),
        ("import nowhere_at_all", Status.ERROR, "ModuleNotFoundError: No module named"),
        ("import os\nos._exit(0)", Status.CRASH, "can't be imported. Your code ended its process"),
        ("raise SystemExit", Status.ERROR, "SystemExit"),
        ("x = '\0'", Status.ERROR, "null bytes"),
        ("x = bytearray(10 ** 13)", Status.MEMORY, "out of memory.*\n  problem.py, line 1: x"),
        ("import json\nexec('x =')", Status.ERROR, "stops while it is being imported"),
        ("(" * 100000, Status.ERROR, "too many nested|problem.py"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_loaded(opened, source, status, message):
    with pytest.raises(CannotLoad, match=message) as caught:
        opened(source)
    assert caught.value.status is status


@pytest.mark.parametrize("source", [b"x = '\xff'", "# coding: latin-1\nx = 'é'".encode("latin-1")])
def test_encodings_are_pythons_own(sandbox, source):
    if not source.startswith(b"#"):
        with pytest.raises(CannotLoad, match="can't be read as Python"):
            sandbox.open(source)
    else:
        assert sandbox.open(source).x == "é"


@pytest.mark.parametrize(
    "name", ["not an identifier", "a" * 200, "\ud800", 7, None, ""], ids=ascii
)  # fmt: skip
def test_names_that_are_none_are_left_out(opened, name):
    problem = opened(f"globals()[{name!r}] = print\ndef f(): return 1")
    assert problem.f() == 1
    assert problem._caller.names() == ["f"]


def test_many_names_do_not_hide_the_last(opened):
    problem = opened("for n in range(3000): globals()[f'g{n}'] = print\ndef f(): return 1")
    assert problem.f() == 1


# Refusals


@pytest.mark.parametrize(
    "value", [lambda: 0, nn.Linear(1, 1), object(), {1, 2}], ids=lambda v: type(v).__name__
)
def test_what_cannot_be_handed_over_is_refused(opened, value):
    problem = opened("def f(x): return 1")
    with pytest.raises(TypeError, match="can't be handed to a student's code"):
        problem.f(value)


def test_unsupported_uses_of_modules_are_refused(opened):
    layer = opened(LAYER).Layer()
    with pytest.raises(TypeError, match="isn't supported"):
        layer.query = nn.Linear(1, 1)
    with pytest.raises(TypeError):
        copy.deepcopy(layer)
    with pytest.raises((TypeError, pickle.PicklingError, AttributeError)):
        pickle.dumps(layer)
    with pytest.raises(AttributeError, match="'Layer' object has no attribute 'nothing'"):
        layer.nothing  # noqa: B018


def test_sparse_results_are_bad_output(opened):
    problem = opened("import torch\ndef f(): return torch.eye(3).to_sparse()")
    with pytest.raises(WorkerFailure, match="plain dense") as caught:
        problem.f()
    assert caught.value.status is Status.BAD_OUTPUT


def test_a_scripted_function_can_read_its_source(opened):
    source = """
        import torch

        @torch.jit.script
        def double(x: torch.Tensor) -> torch.Tensor:
            return x + x
    """
    assert opened(source).double(torch.ones(1)).item() == 2
