"""Tells known mistakes in problem 04 apart: an instrument of the grader's, not a lesson."""

import math

import torch

from grader.errors import Mismatch
from grader.testing.compare import parameters, require, set_weights
from grader.testing.diagnose import attempt
from worked_example import LAYERS, holding, self_attention_by_hand, softmax_by_hand


def probe(problem):
    """Ask a few small fixed questions; known mistakes answer them differently."""
    numbers = torch.sin(torch.arange(200.0, dtype=torch.float64) ** 2)
    scores, upstream = 2 * numbers[:40].reshape(2, 1, 4, 5), numbers[40:80].reshape(2, 1, 4, 5)
    huge, huge_mask = huge_scores()
    causal = torch.tensor([[j <= i for j in range(5)] for i in range(4)])
    padding = torch.tensor([[True, True, False, True, False], [False, True, True, False, True]])
    padding = padding[:, None, None, :]
    low = torch.tensor([[-1e12, 0.5, -2e12], [0.25, -3e12, 1e9]], dtype=torch.float64)
    weights = {}
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = 2 * numbers[9 * start : 9 * start + 9].reshape(3, 3)
        weights[f"{name}.bias"] = numbers[3 * start : 3 * start + 3] / 2

    def ignores_device():
        problem.causal_mask(3, device="cpu")
        try:
            return problem.causal_mask(3, device="meta").device.type != "meta"
        except Exception:
            return False  # some right ways of writing it can't run there

    def softmax(scores, mask):
        return problem.masked_softmax(scores.clone(), mask.clone())

    def softmax_gradient(scores, mask, upstream):
        scores = scores.clone().requires_grad_()
        output = problem.masked_softmax(1 * scores, mask.clone())
        gradient = torch.autograd.grad(output, scores, upstream)[0]
        # If there is NaN in it, how torch happens to run the function decides where.
        return gradient if gradient.isfinite().all() else gradient * math.nan

    def softmax_changes(name):
        before = {"scores": scores, "mask": causal}
        arguments = {key: tensor.clone() for key, tensor in before.items()}
        try:
            problem.masked_softmax(**arguments)
        except Mismatch as found:  # in grading a change is noticed at once
            return name in str(found)
        return not torch.equal(arguments[name], before[name])

    def layer(n_positions=5):
        return holding(problem.CausalAttention(3, n_positions), weights)

    def without_bias():
        made = problem.CausalAttention(3, 5, bias=False).double()
        names = parameters(made)
        set_weights(made, {name: weights[name] for name in weights if name in names})
        return made(tokens(1, 4))

    def biases(**asked):
        names = parameters(problem.CausalAttention(3, 5, **asked))
        require(all(f"{name}.weight" in names for name in LAYERS), "A layer is missing.")
        return sum(f"{name}.bias" in names for name in LAYERS)

    def tokens(batch, length):
        return numbers[-3 * batch * length :].reshape(batch, length, 3)

    def before_a_huge_future():
        return layer()(torch.cat([tokens(1, 2), 1e100 * tokens(1, 2)], dim=1))[:, :2]

    def refuses_too_long():
        try:
            layer()(tokens(1, 6))
        except ValueError:
            return True
        return False

    def after_other_calls():
        made = layer()
        made(tokens(1, 3))
        made(tokens(1, 5))
        return made(tokens(2, 4))

    def layer_gradient(name):
        made, x = layer(), tokens(2, 4).clone().requires_grad_()
        inputs = {"x": x} | parameters(made)
        return torch.autograd.grad(made(x), inputs[name], numbers[:24].reshape(2, 4, 3))[0]

    def layer_changes_tokens():
        x = tokens(2, 4).clone()
        layer()(x)
        return not torch.equal(x, tokens(2, 4))

    def in_float32():
        made = layer().float()
        return made(tokens(1, 4).float())

    def starts_are_the_same():
        starts = []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            made = problem.CausalAttention(3, 2)
            starts.append(parameters(made)["query.weight"].detach().clone())
        return torch.equal(*starts)

    def seven_digits_only(actual, expected):
        return 1e-10 < (actual - expected).detach().abs().max().item() < 1e-5

    questions = {
        "causal_mask.of 4": lambda: problem.causal_mask(4),
        "causal_mask.of 7": lambda: problem.causal_mask(7),
        "causal_mask.ignores its device": ignores_device,
        "masked_softmax.causal": lambda: softmax(scores, causal),
        "masked_softmax.padding": lambda: softmax(scores, padding),
        "masked_softmax.3-D": lambda: softmax(scores[0], causal),
        "masked_softmax.far below zero": lambda: softmax(low, low < -1e10),
        "masked_softmax.huge": lambda: softmax(huge, huge_mask),
        "masked_softmax.float32": lambda: softmax(scores.float(), causal),
        "masked_softmax.gradient": lambda: softmax_gradient(scores, causal, upstream),
        "masked_softmax.gradient, huge": lambda: softmax_gradient(
            huge, huge_mask, numbers[:28].reshape(7, 4)
        ),
        "masked_softmax.changes its scores": lambda: softmax_changes("scores"),
        "masked_softmax.changes its mask": lambda: softmax_changes("mask"),
        "masked_softmax.seven digits only": lambda: seven_digits_only(
            softmax(scores, causal), causal_softmax_by_hand(scores)
        ),
        "attention.the mask": lambda: dict(layer().named_buffers())["mask"].double(),
        "attention.trains the mask": lambda: "mask" in parameters(layer()),
        "attention.biases": lambda: biases(),
        "attention.biases where none are asked for": lambda: biases(bias=False),
        "attention.default width": lambda: len(
            parameters(problem.CausalAttention(n_positions=2))["query.weight"]
        ),
        "attention.no bias": without_bias,
        "attention.ordinary": lambda: layer()(tokens(2, 4)),
        "attention.one sequence": lambda: layer()(tokens(1, 3)),
        "attention.one token": lambda: layer()(tokens(2, 1)),
        "attention.large batch": lambda: layer()(tokens(7, 2)),
        "attention.longest": lambda: layer()(tokens(1, 5)),
        "attention.wider than long": lambda: layer(2)(tokens(1, 2)),
        "attention.refuses what is too long": refuses_too_long,
        "attention.huge tokens": lambda: 1e-100 * layer()(1e100 * tokens(2, 4)),
        "attention.before a huge future": before_a_huge_future,
        "attention.after other calls": after_other_calls,
        "attention.changes its argument": layer_changes_tokens,
        "attention.float32": in_float32,
        "attention.seven digits only": lambda: seven_digits_only(
            layer()(tokens(2, 4)),
            self_attention_by_hand(tokens(2, 4), weights, causal=True),
        ),
        "attention.starts the same each time": starts_are_the_same,
    }
    for name in ("x", *weights):
        questions[f"attention.gradient of {name}"] = lambda name=name: layer_gradient(name)
    return {question: attempt(answer) for question, answer in questions.items()}


def causal_softmax_by_hand(scores):
    """The softmax of the first i + 1 scores in each row i; the weight of the others is 0."""
    length, width = scores.shape[-2:]
    rows = enumerate(scores.reshape(-1, width).tolist())
    seen = [(row[: i % length + 1], width - i % length - 1) for i, row in rows]
    weights = [softmax_by_hand(row) + [0.0] * hidden for row, hidden in seen]
    return torch.tensor(weights, dtype=scores.dtype).reshape(scores.shape)


def huge_scores():
    """Scores and a mask whose rows are each hard in another way."""
    huge = 4e307
    scores = [
        [0.3, huge, -0.5, -huge],
        [-huge, 0.2, -2 * huge, 0.5],
        [huge, -huge, -2 * huge, -3 * huge],
        [100.0, -100.5, -101.0, 100.25],
        [1000.0, 1001.0, 999.5, -huge],
        [-huge, -1000.0, 2 * huge, huge],
        [huge, -4 * huge, 0.5, 2 * huge],
    ]
    mask = [
        [1, 0, 1, 0],
        [1, 0, 1, 0],
        [0, 1, 0, 1],
        [0, 1, 1, 0],
        [1, 1, 1, 0],
        *2 * [[0, 1, 0, 0]],
    ]
    return torch.tensor(scores, dtype=torch.float64), torch.tensor(mask).bool()
