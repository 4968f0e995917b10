"""Torch's compiler is loaded only for files that may need it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from grader.code.forbidden import ForbiddenCall, Guard
from grader.course import Course
from grader.sandbox.spawn import may_want_compiler
from tests.grader.sandbox.conftest import Ask

WANT = [
    "torch.empty(2, device='meta')",
    "from torch import optim",
    "torch.optim.SGD(model.parameters())",
    "torch.compile(f)",
    "torch.func.vmap(f)",
    "from torch.utils.checkpoint import checkpoint",
    "@torch.jit.script",
    "getattr(torch, name)",
    "import torch.autograd.forward_ad as forward_ad",
    "from torch.masked import masked_tensor",
    "torch.use_deterministic_algorithms(True)",
    "torch.sym_max(n, 1)",
]
DO_NOT = [
    "import torch.nn.functional as F",
    "torch.vmap(torch.dot, in_dims=(None, 0))(query, keys)",
    "F.softmax(scores, dim=-1)",
    "# no optimizer touches it",
    "torch.backends.cudnn.deterministic = True",
    "raise ValueError(f'{n_embd} is not divisible by {n_head}')",
    "self.register_buffer('mask', torch.ones(n, n).tril().bool())",
    "masked = scores.masked_fill(mask, -math.inf)  # the residual path keeps both",
]


@pytest.mark.parametrize("line", WANT)
def test_lines_that_may_need_the_compiler(line: str) -> None:
    assert may_want_compiler(line.encode())


@pytest.mark.parametrize("line", DO_NOT)
def test_lines_that_do_not_need_the_compiler(line: str) -> None:
    assert not may_want_compiler(line.encode())


def test_no_reference_needs_the_compiler(course: Course) -> None:
    """If a reference needed torch's compiler, every run would load it."""
    for problem in course.problems():
        assert not may_want_compiler(course.solution(problem).read_bytes()), problem.id


FORBIDDEN = ("softmax", "scaled_dot_product_attention", "MultiheadAttention")


@pytest.mark.slow
def test_code_may_request_deterministic_algorithms(ask: Ask) -> None:
    """Many files request deterministic algorithms, which loads settings of torch's compiler."""
    total, enabled = ask(
        "import torch\ntorch.use_deterministic_algorithms(True, warn_only=True)",
        "torch.ones(3).cumsum(0).tolist()",
        "torch.are_deterministic_algorithms_enabled()",
        forbidden=FORBIDDEN,
    )
    assert total == [1.0, 2.0, 3.0]
    assert enabled


def test_a_worker_has_the_compiler_if_it_is_needed(ask: Ask) -> None:
    """The compiler uses forbidden functions, so it is loaded before these functions are removed."""
    trained, shape = ask(
        """
        import torch
        def trained(x):
            x = torch.nn.Parameter(x)
            optimizer = torch.optim.SGD([x], lr=0.5)
            (3 * x).sum().backward()
            optimizer.step()
            return x.detach()
        def shape():
            return list(torch.ones(2, 3, device="meta", dtype=torch.bool).tril().shape)
        """,
        "problem.trained(torch.zeros(2)).tolist()",
        "problem.shape()",
        forbidden=FORBIDDEN,
    )
    assert trained == [-1.5, -1.5]
    assert shape == [2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("forbidden", [(), FORBIDDEN], ids=["nothing", "attention"])
def test_a_worker_has_no_compiler_if_it_is_not_needed(ask: Ask, forbidden: tuple[str, ...]) -> None:
    source = "import sys as s\ndef has(): return 'torch._dyn' + 'amo' in s.modules"
    assert not ask(source, "problem.has()", forbidden=forbidden)
    assert ask(f"# {WANT[0]}\n{source}", "problem.has()", forbidden=forbidden)


def test_vmap_works_without_the_compiler(ask: Ask) -> None:
    """Correct solutions use `vmap`, and loading the compiler would take seconds in each run."""
    weights = ask(
        """
        import torch
        def alone(row):
            return (row - row.max()).exp() / (row - row.max()).exp().sum()
        def f(x):
            return torch.vmap(alone)(x)
        """,
        "problem.f(torch.arange(6.0).reshape(2, 3).square()).tolist()",
        forbidden=FORBIDDEN,
    )
    x = torch.arange(6.0).reshape(2, 3).square()
    torch.testing.assert_close(torch.tensor(weights), x.softmax(-1))


def test_compiled_code_runs_uncompiled(ask: Ask) -> None:
    source = """
        import torch

        @torch.compile
        def double(x): return x + x

        @torch.compile(dynamic=True)
        def triple(x): return 3 * x

        @torch.jit.script
        def scripted(x: torch.Tensor) -> torch.Tensor:
            return x + x

        def through_a_layer(x):
            layer = torch.nn.Linear(1, 1)
            layer.compile()
            return layer(x) - layer(x)
        """
    names = ("double", "triple", "scripted", "through_a_layer")
    answers = ask(source, *(f"problem.{name}(torch.ones(1)).item()" for name in names))
    assert answers == [2, 3, 2, 0]


NORM = "torch.nn.functional.layer_norm(x, (3,))"
BY_HAND = "(x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)"
TRANSFORMED = {
    "jvp": "torch.func.jvp(norm, (x,), (2 * x,))[1]",
    "forward jacobian": "torch.func.jacfwd(norm)(x)",
    "hessian": "torch.func.hessian(lambda x: norm(x).square().sum())(x)",
    "linearized": "torch.func.linearize(norm, x)[1](x)",
    "vjp": "torch.func.vjp(norm, x)[1](2 * x)[0]",
    "jacobian": "torch.func.jacrev(norm)(x)",
    "gradient": "torch.func.grad(lambda x: norm(x).square().sum())(x)",
    "vmap": "torch.func.vmap(norm)(x)",
    "dual numbers": "dual(x)",
    "masked": "masked_tensor(norm(x), x > 0).exp().to_tensor(0)",
    "jagged": "torch.nested.nested_tensor([*norm(x)], layout=torch.jagged).mul(2).values()",
    "flops": "counted(x)",
}
TOOLS = """
import torch

def dual(x):
    import torch.autograd.forward_ad as forward_ad
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(norm(forward_ad.make_dual(x, 2 * x))).tangent

def masked_tensor(x, mask):
    from torch.masked import masked_tensor
    return masked_tensor(x, mask)

def counted(x):
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False):
        return norm(x) @ x.mT
"""
NORMS = ("layer_norm", "softmax", "log_softmax", "scaled_dot_product_attention", "gelu")


def transformed(name: str, norm: str) -> str:
    """Return a file with a function f(x) that applies `TRANSFORMED[name]` to a norm."""
    return f"{TOOLS}\ndef norm(x): return {norm}\ndef f(x): return {TRANSFORMED[name]}"


def in_process(source: str, x: torch.Tensor) -> torch.Tensor:
    """Call f(x) of a file in the test process. `Guard` detects calls of forbidden functions."""
    file: dict[str, Any] = {}
    exec(source, file)
    with Guard(NORMS):
        value: torch.Tensor = file["f"](x)
    return value


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMED)
def test_loading_more_of_torch_is_no_forbidden_call(ask: Ask, name: str) -> None:
    source, x = transformed(name, BY_HAND), torch.arange(12.0).reshape(4, 3).square()
    output = ask(source, f"problem.f(torch.tensor({x.tolist()})).tolist()", forbidden=NORMS)
    torch.testing.assert_close(torch.tensor(output), in_process(source, x))


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_forbidden_call_in_transformed_code_is_reported(ask: Ask, name: str) -> None:
    source = transformed(name, NORM)
    error = ask(source, "problem.f(torch.ones(4, 3))", forbidden=NORMS)
    assert error == ("ForbiddenCall", "layer_norm")
    with pytest.raises(ForbiddenCall, match="^layer_norm$"):
        in_process(source, torch.ones(4, 3))
