"""No function of PyTorch differentiates if autograd is forbidden."""

from __future__ import annotations

import linecache
import textwrap
from types import ModuleType

import pytest
import torch

from grader.code.forbidden import ForbiddenCall, Guard
from grader.code.loading import no_caller_is_student
from grader.course import own_course
from tests.grader.sandbox.asking import Asked, Raised
from tests.grader.sandbox.roads_to_gradients import HEAD, ROADS

(PROBLEM,) = own_course().select(["10-training-step"])
FORBIDDEN = PROBLEM.entry.forbidden_where({"softmax_backward"})

UNNAMED = {"node called", "scripted operator", "scripted autograd", "differentiated by TorchScript"}
"""Files that raise no ForbiddenCall: `grad_fn` is None, or TorchScript wraps the exception."""

UNSEEN_AT_HOME = {"traced at import", "operator: kernel", "custom operator"}
"""Files in which Guard can't detect autograd.

It runs below torch's hooks, or TorchScript has traced it as products and sums.
"""


@pytest.fixture
def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output of a softmax, and the gradient with respect to this output."""
    drawn = torch.randn(2, 2, 3, dtype=torch.float64)
    return drawn[0].softmax(-1), drawn[1]


def right(weights: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return weights * (grad - (grad * weights).sum(-1, keepdim=True))


def loaded(road: str) -> ModuleType:
    """Load a wrong file in the same way as a run at home, and return the module."""
    text, path = HEAD + ROADS[road], f"{road}/problem.py"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = ModuleType("problem_10")
    exec(compile(text, path, "exec"), vars(module))
    return module


@pytest.mark.parametrize("road", ROADS)
def test_each_file_computes_the_gradient_if_autograd_is_allowed(road, inputs):
    assert torch.allclose(loaded(road).softmax_backward(*inputs), right(*inputs))


@pytest.mark.parametrize("road", ROADS)
def test_no_file_computes_the_gradient_if_autograd_is_forbidden(ask, road):
    x = "torch.ones(2, 3, dtype=torch.float64)"
    call = f"problem.softmax_backward({x}.softmax(-1), {x})"
    kind, _ = ask(HEAD + ROADS[road], call, forbidden=FORBIDDEN)
    is_missing = kind == "NameError"  # the statement that defines the name was skipped
    assert kind == "ForbiddenCall" or is_missing or road in UNNAMED


@pytest.mark.parametrize("road", [road for road in ROADS if road not in UNSEEN_AT_HOME])
def test_autograd_is_detected_at_home(road, inputs):
    module = loaded(road)
    guard = Guard(FORBIDDEN, no_caller_is_student)
    try:
        with guard:
            module.softmax_backward(*inputs)
    except (ForbiddenCall, RuntimeError):  # TorchScript wraps the exception
        pass
    assert guard.called == "autograd"


def test_tests_may_differentiate_at_home(inputs):
    weights = inputs[0].clone().requires_grad_()
    with Guard(FORBIDDEN, no_caller_is_student) as guard:
        weights.log().softmax(-1).backward(inputs[1])
        torch.func.vjp(torch.exp, inputs[0])
    assert guard.called is None
    assert weights.grad is not None


OTHERS = {
    "attention": """
        def f(q, k, v, grad):
            found = torch._scaled_dot_product_flash_attention_for_cpu(q, k, v)
            operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
            return operator(grad, q, k, v, *found, 0.0, False)
        """,
    "loss": """
        def f(logits, *rest):
            targets, weight = torch.zeros(4, dtype=torch.long), torch.ones(())
            likely, total = torch.log_softmax(logits[0, 0], -1), torch.ones(())
            operator = torch.ops.aten.nll_loss_backward
            return operator(weight, likely, targets, None, 1, -100, total)
        """,
    "convolution": """
        def f(q, k, v, grad):
            return torch.nn.grad.conv2d_weight(q, k.shape, grad[..., :1, :1])
        """,
}


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_backward_functions_of_other_functions_are_removed(ask, source):
    call, source = (
        "problem.f(*torch.randn(4, 1, 1, 4, 4))",
        "import torch\n" + textwrap.dedent(source),
    )
    assert ask(source, call, forbidden=FORBIDDEN) == ("ForbiddenCall", "autograd")
    assert not isinstance(ask(source, call), Raised)


RIGHT = {
    "gradients at the end": """
        x = torch.rand(2, 3).requires_grad_()
        w = x.softmax(-1)
        w.retain_grad()
        w.square().sum().backward()
        assert torch.allclose(x.grad, softmax_backward(w.detach(), w.grad))
        largest = (x.grad - softmax_backward(w.detach(), w.grad)).abs().max()
        print(f"{largest:.1e}")
        """,
    "a function that compares": """
        def compare():
            x = torch.rand(2, 3, requires_grad=True)
            w = x.softmax(-1)
            (found,) = torch.autograd.grad(w.sum(), x)
            assert torch.allclose(found, softmax_backward(w.detach(), torch.ones(2, 3)))

        compare()
        """,
    "torch.func at the end": """
        from torch.func import vjp

        w, back = vjp(lambda x: x.softmax(-1), torch.rand(2, 3))
        assert torch.allclose(back(w)[0], softmax_backward(w, w))
        """,
    "gradcheck at the end": """
        torch.autograd.gradcheck(torch.exp, torch.rand(3, requires_grad=True).double())
        """,
    "only when it is run": """
        if __name__ == "__main__":
            torch.rand(2, requires_grad=True).sum().backward()
        """,
    "training at the end": """
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(3)).sum().backward()
            optimizer.step()
        assert model.weight.grad.shape == (2, 3)
        """,
    "layers and parameters": """
        layer, scale = nn.Linear(3, 3), nn.Parameter(torch.ones(3))
        scale.data.mul_(1.0)
        plain = softmax_backward

        def softmax_backward(weights, grad):
            layer(torch.ones(3))
            with torch.no_grad():
                scale.mul_(1.0)
            return (plain(weights.requires_grad_(), grad) * scale).detach()
        """,
    "a custom backward pass": """
        class Softmax(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.softmax(-1)

            @staticmethod
            def backward(ctx, grad):
                return grad

        Softmax.apply(torch.rand(3, requires_grad=True))
        """,
    "decorated": "softmax_backward = torch.inference_mode()(torch.no_grad()(softmax_backward))",
    "scripted": """
        plain = softmax_backward
        softmax_backward = torch.jit.script(plain)
        """,
    "mapped": "softmax_backward = torch.vmap(softmax_backward)",
}


@pytest.mark.parametrize("end", RIGHT.values(), ids=RIGHT)
def test_correct_files_work_without_autograd(sandbox, end, inputs):
    start = """
import torch
from torch import nn

def softmax_backward(weights: torch.Tensor, grad: torch.Tensor):
    back = weights * grad
    back -= weights * back.sum(-1, keepdim=True)
    return back
"""
    tensors = ", ".join(f"torch.tensor({x.tolist()}, dtype=torch.float64)" for x in inputs)
    call = f"problem.softmax_backward({tensors}).tolist()"
    with Asked(sandbox, start + textwrap.dedent(end), call, forbidden=FORBIDDEN) as asked:
        assert torch.allclose(torch.tensor(asked.next(), dtype=torch.float64), right(*inputs))
        assert asked.called == []
