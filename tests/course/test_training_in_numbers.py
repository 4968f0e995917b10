"""The numbers in problem 10's README and tests are correct."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from types import ModuleType

import pytest
import torch

from grader.code.course_modules import modules_of_course
from grader.code.loading import load_module
from grader.course import own_course
from grader.errors import Mismatch
from grader.run.rng import Rng
from tests.catalogue import mistake_files
from tests.course.pages import READMES, row

ROOT = own_course().root
README = READMES["10"]
REFERENCE = ROOT / "solutions/10-training-step/problem.py"
SIZES = (64, 256, 1024)


@pytest.fixture(scope="module")
def tests() -> ModuleType:
    """Return the module of the problem's tests."""
    with modules_of_course(ROOT):
        path = ROOT / "problems/10-training-step/test_training_step.py"
        return load_module(path, "tests_of_10")


@pytest.fixture(scope="module")
def oracles() -> ModuleType:
    """Return the module that computes the expected results of the tests."""
    with modules_of_course(ROOT):
        return importlib.import_module("shared.oracles.training")


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return load_module(REFERENCE, "reference_of_10")


def numbers(name: str) -> list[list[float]]:
    return [[float(number) for number in cell.split(",")] for cell in row("10", name)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "power"), [("divided by √d_k", -0.5), ("not divided", 0.0)])
def test_the_stated_share_of_a_gradient_remains(
    name: str, power: float, oracles: ModuleType, reference: ModuleType
) -> None:
    said = [float(cell.removesuffix(" %")) / 100 for cell in row("10", name)]
    torch.manual_seed(0)
    for d_k, share in zip(SIZES, said, strict=True):
        q, k, grad = (torch.randn(400, *shape) for shape in ((60, d_k), (16, d_k), (60, 16)))
        weights = (q @ k.mT * d_k**power).softmax(-1)
        left = reference.softmax_backward(weights, grad).abs().sum() / grad.abs().sum()
        assert left.item() == pytest.approx(share, abs=0.0008)
        about, near = oracles.REMAINING_SHARES[d_k, power < 0]
        assert left.item() == pytest.approx(about, abs=near / 4)


def test_the_worked_example_is_correct(reference: ModuleType) -> None:
    q = torch.tensor([[2.0, 0, 0, 0], [0, 2, 0, 0]], requires_grad=True)
    k = torch.tensor([[math.log(3), 0, 0, 0], [0, 0, 0, 0]], requires_grad=True)
    v, grad = torch.eye(2, requires_grad=True), torch.tensor([[1.0, 0], [0, 2]])
    scores = q @ k.mT / 2
    weights = scores.softmax(-1)
    weights.retain_grad()
    scores.retain_grad()
    (weights @ v).backward(grad)
    tables = {
        "weights": weights,
        "gradient of the weights": weights.grad,
        "gradient of the scores": scores.grad,
        "gradient of Q": q.grad,
        "gradient of K": k.grad,
        "gradient of V": v.grad,
    }
    for name, table in tables.items():
        assert torch.allclose(torch.tensor(numbers(name)), table, atol=0.6e-4), name
    gradients = reference.attention_backward(q.detach(), k.detach(), v.detach(), grad)
    for gradient, leaf in zip(gradients, (q, k, v), strict=True):
        assert torch.allclose(gradient, leaf.grad, atol=1e-6)


def test_the_example_of_the_loss_is_correct() -> None:
    logits = torch.tensor([[2.0, 6, 2], [1, 1, 1]]).log().requires_grad_()
    torch.nn.functional.cross_entropy(logits, torch.tensor([0, 2])).backward()
    assert logits.softmax(-1)[0].tolist() == pytest.approx([0.2, 0.6, 0.2])
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([-0.4, 0.3, 0.1])
    assert "is -0.8, 0.6, 0.2. For two rows, the mean halves this: -0.4, 0.3, 0.1." in README


def test_the_formulas_for_two_weights_agree_with_autograd(reference: ModuleType) -> None:
    s = torch.tensor([0.4, -0.3], requires_grad=True, dtype=torch.float64)
    w, g = s.softmax(-1), torch.tensor([2.0, -1.0], dtype=torch.float64)
    (first,) = torch.autograd.grad(w[0], s, retain_graph=True)
    (second,) = torch.autograd.grad(w[1], s, retain_graph=True)
    assert first[0].item() == pytest.approx(w.prod().item())
    assert second[0].item() == pytest.approx(-w.prod().item())
    (grad,) = torch.autograd.grad(w, s, g)
    assert grad[0].item() == pytest.approx((w.prod() * (g[0] - g[1])).item())
    gradient = reference.softmax_backward(torch.tensor([0.75, 0.25]), torch.tensor([1.0, 0]))
    assert gradient.tolist() == pytest.approx([0.1875, -0.1875])
    assert "that is 0.1875, and -0.1875 for $s_2$" in README


def test_the_example_of_adamw_and_the_prediction_are_correct(reference: ModuleType) -> None:
    p = torch.nn.Parameter(torch.tensor([1.0, 1, 2]))
    p.grad = torch.tensor([4.0, -0.001, 0])
    torch.optim.AdamW([p], lr=0.1, weight_decay=0.5).step()
    assert p.tolist() == pytest.approx([0.85, 1.05, 1.9], abs=1e-5)
    assert "0.85, 1.05, 1.9" in README
    gradient = reference.softmax_backward(torch.tensor([0.99, 0.01]), torch.tensor([1.0, 0]))
    assert gradient.tolist() == pytest.approx([0.0099, -0.0099])
    assert "0.0099 and -0.0099" in README


def test_the_fraction_of_adamw_does_not_depend_on_the_scale_of_the_gradients() -> None:
    """A step changes a weight by a fraction of the learning rate.

    The fraction is near 1 for constant gradients, and small for alternating gradients.
    """
    assert "The fraction doesn't depend on the scale of the gradients" in README

    def last_step(gradients: list[float]) -> float:
        p = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
        optimizer = torch.optim.AdamW([p], lr=1.0, eps=0.0, weight_decay=0.0)
        for gradient in gradients:
            before = p.item()
            p.grad = torch.full_like(p, gradient)
            optimizer.step()
        return p.item() - before

    random = torch.randn(50, generator=torch.Generator().manual_seed(0)).tolist()
    assert last_step(random) == pytest.approx(last_step([10 * each for each in random]), rel=1e-9)
    assert last_step([0.3] * 50) == pytest.approx(-1)
    assert abs(last_step([0.3, -0.3] * 25)) < 0.2


@pytest.mark.parametrize("size", [1.0, 1e-8])
def test_the_definition_of_adamw_agrees_with_pytorch(size: float, oracles: ModuleType) -> None:
    """In the six steps, a gradient is missing once, and the learning rate changes."""
    rng, rates, gradients = Rng(0), [0.05, 0.05, 0.2, 0.01, 0.0, 0.1], []
    before = rng.normal(3, 2, dtype=torch.float64)
    p = torch.nn.Parameter(before.clone())
    options = {"betas": (0.8, 0.95), "eps": 1e-8, "weight_decay": 0.1}
    optimizer = torch.optim.AdamW([p], lr=1.0, foreach=False, **options)
    for number, lr in enumerate(rates):
        optimizer.param_groups[0]["lr"] = lr
        p.grad = None if number == 2 else size * rng.normal(3, 2, dtype=torch.float64)
        gradients.append(p.grad)
        optimizer.step()
    weights = oracles.adamw(before, gradients, lr=rates, **options)
    assert torch.allclose(weights, p.detach(), rtol=1e-12, atol=1e-12)


def test_the_oracle_of_the_small_model_agrees_with_the_provided_model(
    tests: ModuleType, oracles: ModuleType, reference: ModuleType
) -> None:
    weights = tests.small.random_weights(Rng(0))
    idx, targets = tests.small.random_batch(Rng(1), 2, 5)
    loss = reference.evaluate(tests.small.model_of(weights), [(idx, targets)])
    assert loss == pytest.approx(oracles.loss(weights, idx, targets), rel=1e-5)


@pytest.mark.slow
def test_a_model_learns_despite_four_in_five_mistakes(tests: ModuleType, tmp_path: Path) -> None:
    assert "four in five of the catalogued mistakes in clipping, AdamW and `train_step`" in README
    (problem,) = own_course().select(["10"])
    files = mistake_files(own_course(), problem, tmp_path)
    of_training = {n: f for n, f in files.items() if n.startswith(("clip_", "adamw_", "step_"))}
    learn = 0
    for name, path in of_training.items():
        try:
            tests.test_a_model_learns_by_heart(load_module(path, name), Rng(0))
        except Mismatch:
            continue
        except Exception:  # the mistake raises an exception
            continue
        learn += 1
    assert learn / len(of_training) == pytest.approx(0.8, abs=0.05)
