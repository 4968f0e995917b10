"""In problem 10, calls of PyTorch's autograd, optimizers and norms earn no points."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

import pytest

from grader.course import own_course
from grader.result import ProblemResult, Status, TestResult
from grader.run.suite import Suite
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import TemplateProcess
from tests.catalogue import reference
from tests.lent import lent_sandbox
from tests.source_grader import SourceGrader

COURSE = own_course()
(PROBLEM,) = COURSE.select(["10"])
REFERENCE = reference("10")

AtHome = Callable[..., ProblemResult]
Evaluated = Callable[[str], list[TestResult]]

WRONG = {
    "operators": """
        def softmax_backward(weights, grad):
            return torch._softmax_backward_data(grad, weights, -1, weights.dtype)

        def attention_backward(q, k, v, grad, mask=None):
            scores = q @ k.mT / q.shape[-1] ** 0.5
            weights = (scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(-1)
            slopes = torch.ops.aten._softmax_backward_data(grad @ v.mT, weights, -1, q.dtype)
            slopes = slopes / q.shape[-1] ** 0.5
            return slopes @ k, slopes.mT @ q, weights.mT @ grad

        def cross_entropy_backward(logits, targets):
            likely = logits.flatten(0, -2).log_softmax(-1)
            wanted, one = targets.flatten(), torch.ones((), dtype=logits.dtype)
            count = (wanted != -100).sum().to(logits.dtype)
            aten = torch.ops.aten
            slopes = aten.nll_loss_backward(one, likely, wanted, None, 1, -100, count)
            slopes = aten._log_softmax_backward_data(slopes, likely, -1, logits.dtype)
            return slopes.view_as(logits)
        """,
    "vjp": """
        from torch.autograd.functional import vjp

        def softmax_backward(weights, grad):
            return vjp(lambda x: x.softmax(-1), weights.log(), grad)[1]

        def attention_backward(q, k, v, grad, mask=None):
            def attention(q, k, v):
                scores = q @ k.mT / q.shape[-1] ** 0.5
                scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
                return scores.softmax(-1) @ v

            return vjp(attention, (q, k, v), grad)[1]

        def cross_entropy_backward(logits, targets):
            def loss(x):
                return F.cross_entropy(x.flatten(0, -2), targets.flatten())
            return vjp(loss, logits)[1]
        """,
}

OPTIMIZER = """
from torch.optim import _functional

class AdamW(AdamW):
    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            self.steps[i] += 1
            p *= 1 - self.lr * self.weight_decay
            _functional.sparse_adam(
                [p], [p.grad.to_sparse()], [self.means[i]], [self.squares[i]], [self.steps[i]],
                eps=self.eps, beta1=self.betas[0], beta2=self.betas[1], lr=self.lr, maximize=False,
            )

def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = nn.utils.get_total_norm(gradients).item()
    for gradient in gradients if norm > max_norm else ():
        gradient *= max_norm / norm
    return norm
"""


@pytest.fixture(scope="module")
def sandbox(origin: TemplateProcess) -> Iterator[Sandbox]:
    with lent_sandbox(origin, call_seconds=30, submission_seconds=300) as sandbox:
        yield sandbox


def graded(sandbox: Sandbox, added: str) -> ProblemResult:
    """Return the result of the reference with additional code at its end."""
    return SourceGrader(COURSE, sandbox, PROBLEM)(f"{REFERENCE}\n{textwrap.dedent(added)}")


def autograd_messages(suite: Suite, result: ProblemResult) -> dict[str, str]:
    """Map the id of each test that forbids autograd to the first sentence of its message."""
    watching = {test.id for test in suite.tests if "autograd" in test.forbidden}
    return {test.id: test.message.split(".")[0] for test in result.tests if test.id in watching}


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_calls_of_autograd_earn_no_points(
    sandbox: Sandbox, course_suite: Suite, wrong: str
) -> None:
    result = graded(sandbox, wrong)
    output = autograd_messages(course_suite, result)
    visible = {output[test.id] for test in result.tests if test.id in output and not test.hidden}
    assert visible == {"Your code calls PyTorch's autograd"}
    wrong = {test.id: test.status for test in result.tests if test.status is not Status.PASSED}
    assert wrong == dict.fromkeys(output, Status.FORBIDDEN)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_calls_of_autograd_at_home_fail(course_suite: Suite, at_home: AtHome, wrong: str) -> None:
    result = at_home("10", REFERENCE + textwrap.dedent(wrong), hidden=False)
    assert {*autograd_messages(course_suite, result).values()} == {
        "Your code calls PyTorch's autograd"
    }


@pytest.mark.slow
def test_optimizers_and_norms_of_pytorch_get_no_points(sandbox: Sandbox) -> None:
    result = graded(sandbox, OPTIMIZER)
    parts = (
        "clip",
        "adamw",
        "train_step",
        "learns",
        "two_models",
        "state_after",
        "learning_rate_may",
    )
    for test in result.tests:
        if any(part in test.name for part in parts) and "refused" not in test.name:
            assert test.status is Status.FORBIDDEN, test.name


EVALUATE = """
def evaluate(model, batches):
    training = model.training
    model.eval()
    total, count = 0.0, 0
    for idx, targets in batches:
        {switch}
            logits = model(idx).flatten(0, 1)
        total += F.cross_entropy(logits, targets.flatten(), reduction="sum").item()
        count += targets.numel()
    model.train(training)
    return total / count
"""


@pytest.fixture
def evaluated(course_suite: Suite, at_home: AtHome) -> Evaluated:
    """Return a function that runs the tests of `evaluate` on the reference with added code."""
    tests = [test.id for test in course_suite.tests if "evaluate" in test.id]
    return lambda added: at_home("10", REFERENCE + added, tests=tests).tests


@pytest.mark.parametrize(
    "switch",
    [
        "with torch.no_grad():",
        "with torch.inference_mode():",
        "with torch.set_grad_enabled(False):",
    ],
)
def test_gradients_may_be_switched_off_in_any_way(evaluated: Evaluated, switch: str) -> None:
    tests = evaluated(EVALUATE.format(switch=switch))
    assert [test.message for test in tests if test.message] == []


def test_weights_may_have_requires_grad_false_during_evaluation(evaluated: Evaluated) -> None:
    added = EVALUATE.format(switch="if True:")
    added = added.replace("    model.eval()\n", "    model.eval().requires_grad_(False)\n")
    added = added.replace("model.train(training)", "model.train(training).requires_grad_()")
    tests = evaluated(added)
    assert [test.message for test in tests if test.message] == []


@pytest.mark.parametrize("switch", ["if True:", "with torch.enable_grad():"])
def test_evaluating_with_gradients_fails(evaluated: Evaluated, switch: str) -> None:
    tests = evaluated(EVALUATE.format(switch=switch))
    failed = [test.name for test in tests if test.status is Status.FAILED]
    assert failed == ["test_evaluate_records_no_gradients"]
