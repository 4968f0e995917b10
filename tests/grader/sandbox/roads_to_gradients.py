"""Wrong files for softmax_backward, each of which lets PyTorch differentiate in a different way."""

HEAD = """
import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn
from torch.autograd import functional

def scores_of(weights):
    return weights.detach().clone().log().requires_grad_()

def softmax(x):
    return x.softmax(-1)

def by_formula(x):
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)
"""

OPERATORS = {
    "torch": "torch._softmax_backward_data(grad, weights, -1, weights.dtype)",
    "of the logarithm": (
        "torch._log_softmax_backward_data(grad * weights, weights.log(), -1, weights.dtype)"
    ),
    "masked": (
        "torch.ops.aten._masked_softmax_backward("
        "grad, weights, torch.zeros_like(weights).bool(), -1)"
    ),
    "out": (
        "torch.ops.aten._softmax_backward_data.out(grad, weights, -1, weights.dtype, "
        "grad_input=torch.empty_like(grad))"
    ),
    "kernel": (
        "torch.ops.aten._softmax_backward_data.default.redispatch("
        "torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), grad, weights, -1, weights.dtype)"
    ),
    "vmap": (
        "torch.vmap(lambda g, w: torch._softmax_backward_data(g, w, -1, w.dtype))(grad, weights)"
    ),
}

FUNCTIONS = {
    "autograd.grad": """
        x = scores_of(weights)
        return torch.autograd.grad(softmax(x), x, grad)[0]
    """,
    "Tensor.backward": """
        x = scores_of(weights)
        softmax(x).backward(grad)
        return x.grad
    """,
    "autograd.backward": """
        x = scores_of(weights)
        torch.autograd.backward([by_formula(x)], [grad])
        return x.grad
    """,
    "overrides off": """
        with torch._C.DisableTorchFunction():
            return torch._softmax_backward_data(grad, weights, -1, weights.dtype)
    """,
    "gradients switched on": """
        with torch.enable_grad():
            x = scores_of(weights)
            return torch.autograd.grad((softmax(x) * grad).sum(), x)[0]
    """,
    "engine": """
        x = scores_of(weights)
        engine = torch.autograd.Variable._execution_engine
        return engine.run_backward((by_formula(x),), (grad,), False, False, (x,), True, False)[0]
    """,
    "operator that runs the engine": """
        x = scores_of(weights)
        torch.ops.aten._backward((softmax(x) * grad).sum(), [x])
        return x.grad
    """,
    "node called": """
        return softmax(scores_of(weights)).grad_fn(grad)
    """,
    "functional.vjp": """
        return functional.vjp(softmax, weights.log(), grad)[1]
    """,
    "functional.jvp": """
        return functional.jvp(softmax, weights.log(), grad)[1]
    """,
    "func.vjp": """
        return torch.func.vjp(softmax, weights.log())[1](grad)[0]
    """,
    "func.grad": """
        return torch.func.grad(lambda x: (by_formula(x) * grad).sum())(weights.log())
    """,
    "func.jacfwd": """
        jacobians = torch.vmap(torch.func.jacfwd(by_formula))(weights.log())
        return (jacobians @ grad[..., None])[..., 0]
    """,
    "func.jvp": """
        return torch.func.jvp(by_formula, (weights.log(),), (grad,))[1]
    """,
    "a module of functorch": """
        from torch._functorch import eager_transforms

        return eager_transforms.vjp(softmax, weights.log())[1](grad)[0]
    """,
    "level of gradients": """
        import torch._C._functorch as functorch

        level = functorch._grad_increment_nesting()
        try:
            functorch.set_inplace_requires_grad_allowed(True)
            x = functorch._wrap_for_grad(weights, level).log().requires_grad_()
            y = by_formula(x)
            return functorch._unwrap_for_grad(torch.autograd.grad(y, x, grad)[0], level)
        finally:
            functorch._grad_decrement_nesting()
    """,
    "level of dual numbers": """
        import torch._C._functorch as functorch

        level = functorch._jvp_increment_nesting()
        dual_level = torch._C._enter_dual_level()
        try:
            x = torch._VF._make_dual(weights.log(), grad, level=0)
            y = torch._VF._unpack_dual(by_formula(x), level=0)[1]
            return functorch._unwrap_for_grad(y, level)
        finally:
            torch._C._exit_dual_level(level=dual_level)
            functorch._jvp_decrement_nesting()
    """,
    "make_dual": """
        with forward_ad.dual_level():
            x = forward_ad.make_dual(weights.log(), grad)
            return forward_ad.unpack_dual(by_formula(x)).tangent
    """,
    "hook of a tensor": """
        found = []
        x = scores_of(weights)
        y = x * 1
        y.register_hook(found.append)
        softmax(y).backward(grad)
        return found[0]
    """,
    "custom function": """
        found = []

        class Keep(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, slope):
                found.append(slope)
                return slope

        softmax(Keep.apply(scores_of(weights))).backward(grad)
        return found[0]
    """,
    "checkpoint": """
        from torch.utils.checkpoint import checkpoint

        x = scores_of(weights)
        checkpoint(by_formula, x, use_reentrant=False).backward(grad)
        return x.grad
    """,
    "a part of gradcheck": """
        import sys

        gradcheck = sys.modules["torch.autograd.gradcheck"]
        rows = []
        for row, g in zip(weights, grad):
            x = scores_of(row)
            found = gradcheck._check_analytical_jacobian_attributes((x,), by_formula(x), 0.0, False)
            rows.append(found[0] @ g)
        return torch.stack(rows)
    """,
    "decomposition": """
        from torch._decomp import decompositions

        return decompositions._softmax_backward_data(grad, weights, -1, weights.dtype)
    """,
    "custom operator": """
        library = torch.library.Library("mine", "FRAGMENT")
        library.define("back(Tensor g, Tensor w) -> Tensor")
        operator = torch.ops.aten._softmax_backward_data
        library.impl("back", lambda g, w: operator(g, w, -1, w.dtype), "CPU")
        return torch.ops.mine.back(grad, weights)
    """,
}

SCRIPTS = {
    "scripted operator": """
@torch.jit.script
def scripted(grad: torch.Tensor, weights: torch.Tensor):
    return torch._softmax_backward_data(grad, weights, -1, weights.dtype)

def softmax_backward(weights, grad):
    return scripted(grad, weights)
""",
    "scripted autograd": """
@torch.jit.script
def scripted(x: torch.Tensor, grad: torch.Tensor):
    y = torch.softmax(x, -1)
    upstream: list[torch.Tensor | None] = [grad]
    found = torch.autograd.grad([y], [x], upstream)[0]
    assert found is not None
    return found

def softmax_backward(weights, grad):
    return scripted(scores_of(weights), grad)
""",
    "differentiated by TorchScript": """
@torch.jit.script
def scripted(x: torch.Tensor):
    return torch.softmax(x * 1.0, -1) * 1.0

def softmax_backward(weights, grad):
    for _ in range(4):
        y = scripted(scores_of(weights))
    return y.grad_fn(grad, None, None)
""",
    "traced at import": """
def by_dual_numbers(weights, grad):
    return torch.func.jvp(softmax, (weights.log(),), (grad,))[1]

example = tuple(torch.rand(2, 2, 3, dtype=torch.float64))
traced = torch.jit.trace(by_dual_numbers, example, check_trace=False)

def softmax_backward(weights, grad):
    return traced(weights, grad)
""",
    "graph made at import": """
from torch.fx.experimental.proxy_tensor import make_fx

def by_autograd(weights, grad):
    x = scores_of(weights)
    return torch.autograd.grad(softmax(x), x, grad)[0]

made = make_fx(by_autograd)(*torch.rand(2, 2, 3, dtype=torch.float64))

def softmax_backward(weights, grad):
    return made(weights, grad)
""",
    "kept at import": """
gradient_of, engine = torch.autograd.grad, torch.autograd.Variable._execution_engine
run = engine.run_backward

def softmax_backward(weights, grad):
    x = scores_of(weights)
    return run((by_formula(x),), (grad,), False, False, (x,), True, False)[0]
""",
    "a graph kept at import": """
KEPT = torch.rand(2, 3, dtype=torch.float64).requires_grad_()
OUT = softmax(KEPT)

def softmax_backward(weights, grad):
    OUT.data.copy_(weights)
    return torch.autograd.grad(OUT, KEPT, grad, retain_graph=True)[0]
""",
    "kernels of autograd put back": """
library = torch.library.Library("aten", "IMPL")

def softmax_backward(weights, grad):
    library._destroy()
    x = scores_of(weights)
    return torch.autograd.grad(by_formula(x), x, grad)[0]
""",
}

ROADS = {
    **{
        f"operator: {name}": f"def softmax_backward(weights, grad):\n    return {call}\n"
        for name, call in OPERATORS.items()
    },
    **{name: f"def softmax_backward(weights, grad):{body}" for name, body in FUNCTIONS.items()},
    **SCRIPTS,
}
