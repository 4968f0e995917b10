"""Forbidden functions are detected under any name. Other functions are allowed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
import torch.ao.nn.quantizable
import torch.nn.functional as F
from torch import nn
from torch.distributions import constraints, transform_to
from torch.distributions.transforms import ComposeTransform, SoftmaxTransform

from grader.code.forbidden import ForbiddenCall, Guard
from grader.sandbox.worker.removal import remove

SOFTMAX = ("softmax", "softmin", "log_softmax", "logsumexp")
ATTENTION = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")
PARTS_OF_A_BLOCK = (
    *("gelu", "layer_norm", "group_norm", "instance_norm", "batch_norm", "rms_norm"),
    "TransformerEncoderLayer",
)
TRAINING = ("optim", "clip_grad_norm_")

X = torch.randn(2, 3, 4)


@torch.jit.script
def scripted_softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


@torch.jit.script
def scripted_attention(x: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x, x)


def softmax_in_try() -> torch.Tensor:
    try:
        return torch.softmax(X, -1)
    except Exception:
        return X


def softmax_without_overrides() -> torch.Tensor:
    with torch._C.DisableTorchFunction():
        return torch.softmax(X, -1)


@torch.jit.script
def scripted_norm(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, [4])


MULTI_HEAD = nn.MultiheadAttention(4, 2, batch_first=True)
QUANTIZABLE = torch.ao.nn.quantizable.MultiheadAttention(4, 2)

SOFTMAX_SPELLINGS: dict[str, Callable[[], object]] = {
    "torch": lambda: torch.softmax(X, -1),
    "functional": lambda: F.softmax(X, -1),
    "method": lambda: X.softmax(-1),
    "module": lambda: nn.Softmax(-1)(X),
    "getattr": lambda: getattr(torch, "soft" + "max")(X, -1),
    "special": lambda: torch.special.softmax(X, -1),
    "operator": lambda: torch.ops.aten.softmax.int(X, -1),
    "kernel": lambda: torch.ops.aten._softmax(X, -1, False),
    "bindings": lambda: torch._C._VariableFunctions.softmax(X, -1),
    "scripted": lambda: scripted_softmax(X),
    "softmin": lambda: F.softmin(-X, -1),
    "log": lambda: X.log_softmax(-1).exp(),
    "logsumexp": lambda: (X - X.logsumexp(-1, keepdim=True)).exp(),
    "last of cumulated": lambda: (X - X.logcumsumexp(-1)[..., -1:]).exp(),
    "gumbel": lambda: F.gumbel_softmax(X),
    "categorical": lambda: torch.distributions.Categorical(logits=X).probs,
    "cross entropy": lambda: F.cross_entropy(X.view(6, 4), torch.zeros(6, dtype=torch.long)),
    "vmap": lambda: torch.vmap(lambda row: torch.softmax(row, -1))(X),
    "transform": lambda: SoftmaxTransform()(X),
    "composed transform": lambda: ComposeTransform([SoftmaxTransform()])(X),
    "transform of a constraint": lambda: transform_to(constraints.simplex)(X),
    "in a try statement": softmax_in_try,
    "overrides off": softmax_without_overrides,
}

ATTENTION_SPELLINGS: dict[str, Callable[[], object]] = {
    "functional": lambda: F.scaled_dot_product_attention(X, X, X),
    "4-D": lambda: F.scaled_dot_product_attention(X[None], X[None], X[None]),
    "operator": lambda: torch.ops.aten.scaled_dot_product_attention(X, X, X),
    "bindings": lambda: torch._C._nn.scaled_dot_product_attention(X, X, X),
    "scripted": lambda: scripted_attention(X),
    "module": lambda: MULTI_HEAD(X, X, X),
    "module without weights": lambda: MULTI_HEAD(X, X, X, need_weights=False),
    "quantizable module": lambda: QUANTIZABLE(X, X, X),
    "encoder layer": lambda: nn.TransformerEncoderLayer(4, 2, batch_first=True)(X),
}

ENCODER_LAYER = nn.TransformerEncoderLayer(4, 2, batch_first=True, norm_first=True)
RMS_NORM = nn.RMSNorm(4)

SPELLINGS_OF_A_BLOCK: dict[str, Callable[[], object]] = {
    "gelu": lambda: F.gelu(X, approximate="tanh"),
    "gelu as a module": lambda: nn.GELU()(X),
    "gelu in place": lambda: torch._C._nn.gelu_(X.clone()),
    "gelu as an operator": lambda: torch.ops.aten.gelu(X),
    "gelu of a product": lambda: torch._addmm_activation(X[0, 0], X[0, :, :3], X[1], use_gelu=True),
    "layer": lambda: F.layer_norm(X, (4,)),
    "layer as a module": lambda: nn.LayerNorm(4)(X),
    "layer by its parent": lambda: nn.LayerNorm.forward(nn.LayerNorm(4), X),
    "layer, torch": lambda: torch.layer_norm(X, (4,)),
    "layer, native": lambda: torch.native_layer_norm(X, (4,), None, None, 1e-5),
    "layer, scripted": lambda: scripted_norm(X),
    "layer, vmap": lambda: torch.vmap(lambda row: F.layer_norm(row, (4,)))(X),
    "group": lambda: nn.GroupNorm(1, 3)(X),
    "instance": lambda: nn.InstanceNorm1d(3)(X),
    "batch": lambda: F.batch_norm(X[0].T, None, None, training=True),
    "batch as a module": lambda: nn.BatchNorm1d(3)(X),
    "batch, native": lambda: torch.native_batch_norm(X, None, None, None, None, True, 0.1, 1e-5),
    "rms": lambda: F.rms_norm(X - X.mean(-1, keepdim=True), (4,)),
    "rms as a module": lambda: RMS_NORM(X),
    "encoder layer": lambda: ENCODER_LAYER(X),
    "encoder layer in evaluation": lambda: ENCODER_LAYER.eval()(X),
}


W = nn.Parameter(torch.randn(3))
W.grad = torch.ones(3)


class OwnOptimizer(torch.optim.Optimizer):
    """An unchanged subclass of torch's optimizer."""


SPELLINGS_OF_TRAINING: dict[str, Callable[[], object]] = {
    "AdamW": lambda: torch.optim.AdamW([W]),
    "SGD": lambda: torch.optim.SGD([W], lr=0.1),
    "a class of its own": lambda: OwnOptimizer([W], {}),
    "function": lambda: sys.modules["torch.optim.adamw"].adamw(
        [W.detach()], [X[0, 0, :3]], [X[0, 0, :3]], [X[0, 0, :3] ** 2], [], [torch.ones(())],
        amsgrad=False, beta1=0.9, beta2=0.99, lr=0.1, weight_decay=0.0, eps=1e-8, maximize=False,
    ),
    "function for sparse gradients": lambda: sys.modules["torch.optim._functional"].sparse_adam(
        [W.detach()], [X[0, 0, :3].to_sparse()], [X[0, 0, :3]], [X[0, 0, :3] ** 2], [1],
        eps=1e-8, beta1=0.9, beta2=0.99, lr=0.1, maximize=False,
    ),
    "operator": lambda: torch._fused_adamw_(
        [W.detach()], [W.grad], [torch.ones(3)], [torch.ones(3)], [], [torch.ones(())],
        lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
    ),
    "schedule": lambda: torch.optim.lr_scheduler.LambdaLR.get_lr(W),
    "clip": lambda: nn.utils.clip_grad_norm_([W], 1.0),
    "clip by value": lambda: nn.utils.clip_grad_value_([W], 1.0),
    "clip to a norm": lambda: nn.utils.clip_grads_with_norm_([W], 1.0, torch.ones(())),
    "norm of all": lambda: nn.utils.get_total_norm([W.grad]),
}  # fmt: skip


def own_training() -> None:
    """Run a training step without torch.optim."""
    W.grad = None
    (F.cross_entropy(W[None] * 2, torch.tensor([1])) + W.softmax(-1)[0]).backward()
    assert W.grad is not None
    norm = torch.linalg.vector_norm(torch.cat([W.grad.flatten()]))
    torch._foreach_mul_([W.grad], 1 / float(norm))
    with torch.no_grad():
        W.addcdiv_(W.grad, W.grad.square().sqrt() + 1e-8, value=-1e-3)


def is_detected(forbidden: tuple[str, ...], call: Callable[[], object]) -> bool:
    guard = Guard(forbidden)
    try:
        with guard:
            call()
    except (ForbiddenCall, RuntimeError):  # TorchScript wraps the exception
        assert guard.called
    return guard.called is not None


@pytest.mark.parametrize("spelling", SOFTMAX_SPELLINGS)
def test_softmax_is_detected(spelling: str) -> None:
    assert is_detected(SOFTMAX, SOFTMAX_SPELLINGS[spelling])


@pytest.mark.parametrize("spelling", ATTENTION_SPELLINGS)
def test_attention_is_detected(spelling: str) -> None:
    assert is_detected(ATTENTION, ATTENTION_SPELLINGS[spelling])


def test_softmax_is_allowed_where_only_attention_is_forbidden() -> None:
    assert not is_detected(ATTENTION, lambda: torch.softmax(X, -1))


@pytest.mark.parametrize("spelling", SPELLINGS_OF_A_BLOCK)
def test_a_part_of_a_block_is_detected(spelling: str) -> None:
    assert is_detected(PARTS_OF_A_BLOCK, SPELLINGS_OF_A_BLOCK[spelling])


@pytest.mark.parametrize("spelling", SPELLINGS_OF_TRAINING)
def test_a_part_of_training_is_detected(spelling: str) -> None:
    assert is_detected(TRAINING, SPELLINGS_OF_TRAINING[spelling])


def test_a_training_step_by_hand_is_allowed() -> None:
    assert not is_detected(TRAINING, own_training)


class OwnNorm(nn.LayerNorm):
    """A layer norm that uses the parameters of torch's LayerNorm, but not its `forward`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias


def own_parts_of_a_block() -> torch.Tensor:
    """Call operations that a block may use: var, std, tanh, norms, fused attention."""
    x = OwnNorm(4)(X) / X.std(-1, keepdim=True) / torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    x = F.scaled_dot_product_attention(x, x, F.normalize(x), is_causal=True)
    return F.dropout(0.5 * x * (1 + torch.tanh(x)))


def test_operations_of_a_block_are_allowed() -> None:
    assert not is_detected(PARTS_OF_A_BLOCK, own_parts_of_a_block)


def own_softmax() -> torch.Tensor:
    """Mention torch.softmax and logsumexp without calling them."""
    softmax = torch.exp(X - X.amax(-1, keepdim=True))
    return softmax / softmax.sum(-1, keepdim=True)


def test_mentions_of_forbidden_functions_are_not_calls() -> None:
    assert not is_detected(SOFTMAX, own_softmax)


def test_results_and_gradients_are_the_same_under_the_guard() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    with Guard(SOFTMAX):
        (torch.vmap(torch.exp)(x) @ x.T).sum().backward()
    watched, x.grad = x.grad, None
    (torch.exp(x) @ x.T).sum().backward()
    assert torch.equal(watched, x.grad)


def test_forbidden_functions_work_outside_of_the_guard() -> None:
    assert is_detected(SOFTMAX, lambda: SoftmaxTransform()(X))
    assert torch.allclose(SoftmaxTransform()(X).sum(-1), torch.ones(2, 3))


def test_the_exact_name_of_the_call_is_reported() -> None:
    with pytest.raises(ForbiddenCall, match="^log_softmax$"), Guard(SOFTMAX):
        X.log_softmax(-1)


def test_creating_a_module_is_not_a_call() -> None:
    def made() -> object:
        return str(nn.Softmax(-1)), nn.MultiheadAttention(4, 2), nn.Transformer(4, 2, 1, 1, 4)

    assert not is_detected(SOFTMAX + ATTENTION + PARTS_OF_A_BLOCK, made)


def test_an_unknown_name_cannot_be_forbidden() -> None:
    with pytest.raises(KeyError):
        Guard(["no_such_function"])


# Detects calls of removed functions without a guard, as a worker does. The effect of `remove` is
# permanent, so a separate process runs this code.
WITHOUT_GUARD = """
import importlib.util, sys
import torch._refs
spec = importlib.util.spec_from_file_location("spellings", sys.argv[1])
tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tests)
noted = []
names = [*tests.SOFTMAX, *tests.ATTENTION, *tests.PARTS_OF_A_BLOCK, *tests.TRAINING]
tests.remove(names, noted)

def is_detected(call):
    try:
        call()
    except (tests.ForbiddenCall, RuntimeError):
        pass
    return bool(noted and noted.pop())

kinds = tests.SOFTMAX_SPELLINGS, tests.ATTENTION_SPELLINGS, tests.SPELLINGS_OF_A_BLOCK
kinds += (tests.SPELLINGS_OF_TRAINING,)
for spellings in kinds:
    print(*(name for name, call in spellings.items() if not is_detected(call)))
in_python = torch._refs.softmax, torch._refs.softmax.__wrapped__
print(*(is_detected(lambda: softmax(tests.X, -1)) for softmax in in_python))
print(is_detected(tests.own_softmax))
"""


@pytest.mark.slow
def test_removed_functions_are_detected_without_a_guard() -> None:
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_GUARD, __file__]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout == "\n\n\n\nTrue True\nFalse\n", run.stderr


def test_an_unknown_name_cannot_be_removed() -> None:
    with pytest.raises(KeyError):
        remove(["no_such_function"], [])
