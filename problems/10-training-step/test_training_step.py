"""Tests of problem 10. Run them with `uv run pytest` in this folder."""

import itertools
import math
from functools import partial

import pytest
import torch

from grader.code.cost import counting
from grader.run import checks
from shared import robust
from shared import small_model as small
from shared import worked_example as example
from shared.oracles import training as oracles

DOUBLE = torch.float64

TEN_DIGITS = {"rtol": 1e-10, "atol": 1e-10}
"""Tolerances for gradients in float64; rounding errors are about 1e-15."""

TWELVE_DIGITS = {"rtol": 1e-12, "atol": 1e-12}
"""Tolerances in float64 for parameters after steps of AdamW, in test_digits_of_adamw."""

NEAR = {"rtol": 1e-5, "atol": 1e-6}
"""Tolerances for parameters after some steps of AdamW, in all other tests."""


def check_attention(problem, arguments, expected, call, **near):
    """Compare the result of attention_backward for q, k, v, grad and an optional mask."""
    check_qkv(problem.attention_backward(*copies(arguments)), expected, call, **near)


def copies(tensors):
    """Return a copy of each tensor."""
    return [tensor.clone() for tensor in tensors]


def check_qkv(result, expected, call, **near):
    """Compare the gradients dq, dk and dv with the expected ones."""
    gradients = example.unpack(result, 3, "the gradients dq, dk and dv", call)
    for name, gradient, right in zip("qkv", gradients, checks.parts(expected, 3), strict=True):
        checks.check(gradient, right, f"d{name} of {call}", **near)


def inputs(rng, n, m, d_k, d_v, *batch, dtype=DOUBLE):
    """Return random q, k and v, and a gradient with respect to the output."""
    shapes = (n, d_k), (m, d_k), (m, d_v), (n, d_v)
    return [rng.normal(*batch, *shape, dtype=dtype) for shape in shapes]


def some_mask(rng, *shape):
    """Return a random mask with which each query attends to at least one key."""
    mask = rng.normal(*shape) > 0
    if shape[-1] > 1:
        mask[..., -1] = False
    mask[..., 0] |= ~mask.any(-1)
    return mask


def check_named(actual, expected, call, **near):
    """Compare each tensor with the expected one of the same name."""
    for name, tensor in actual.items():
        checks.check(tensor, expected[name], f"`{name}` after {call}", **near)


# softmax_backward


@pytest.mark.points(0.75)
def test_softmax_backward_in_numbers(problem):
    """softmax_backward gives the numbers of the README's example"""
    weights = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    grad = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    call = f"softmax_backward({weights.tolist()}, {grad.tolist()})"
    checks.check(problem.softmax_backward(weights, grad), oracles.SOFTMAX_IN_NUMBERS, call)


SHAPES = [(4,), (3, 5), (4, 4), (2, 3, 5), (2, 1, 2, 6)]
"""Shapes of scores. The last size is the length of a row."""


@pytest.mark.points(0.75)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_backward_of_any_shape(problem, rng, shape):
    """softmax_backward is right for each row, for any shape"""
    weights, grad = rng.normal(*shape).softmax(-1), rng.normal(*shape)
    call = f"softmax_backward(weights, grad) with weights of shape {shape}"
    expected = oracles.softmax_backward(weights, grad)
    checks.check(problem.softmax_backward(weights.clone(), grad.clone()), expected, call)


@pytest.mark.points(0.5)
def test_rows_sum_to_zero(problem, rng):
    """Each row of the gradient sums to 0, and a number added to a row of grad has no effect"""
    weights = rng.normal(2, 4, 6, dtype=DOUBLE).softmax(-1)
    grad = rng.normal(2, 4, 6, dtype=DOUBLE)
    call = "softmax_backward(weights, grad) with weights of shape (2, 4, 6)"
    slope = problem.softmax_backward(weights.clone(), grad.clone())
    checks.check(slope, oracles.softmax_backward(weights, grad), call)
    sums = f"the sums of the rows of {call}"
    checks.check(slope.sum(-1), oracles.sums_of_rows(grad), sums, atol=1e-6)
    moved = problem.softmax_backward(weights, grad + rng.normal(2, 4, 1, dtype=DOUBLE))
    what = f"{call} and a number added to each row of grad, compared with no number added"
    checks.check_same(moved, slope, what)


@pytest.mark.points(0.5)
def test_what_is_left_of_the_gradient(problem, rng):
    """For larger d_k, softmax_backward returns smaller gradients, unless scores are scaled"""
    for is_scaled, d_k in itertools.product((True, False), (64, 256, 1024)):
        q, k = rng.normal(40, 40, d_k), rng.normal(40, 16, d_k)
        weights = (q @ k.mT / (math.sqrt(d_k) if is_scaled else 1)).softmax(-1)
        grad = rng.normal(40, 40, 16)
        slope = problem.softmax_backward(weights, grad.clone())
        checks.check_form(slope, grad, "softmax_backward(weights, grad)")
        left = float(slope.abs().sum() / grad.abs().sum())
        call = (
            "the share of the gradient that is left after softmax_backward, for "
            f"{'scaled' if is_scaled else 'unscaled'} scores of random queries and keys, "
            f"d_k = {d_k}"
        )
        checks.check_that(left, oracles.is_remaining_share, call, d_k, is_scaled)


# attention_backward


@pytest.mark.points(0.75)
def test_attention_backward_in_numbers(problem):
    """attention_backward gives the numbers of the README's 2 x 2 example"""
    arguments = [
        torch.tensor([[2.0, 0, 0, 0], [0, 2, 0, 0]]),
        torch.tensor([[math.log(3), 0, 0, 0], [0, 0, 0, 0]]),
        torch.tensor([[1.0, 0], [0, 1]]),
        torch.tensor([[1.0, 0], [0, 2]]),
    ]
    call = "attention_backward(q, k, v, grad) of the README's example"
    check_attention(problem, arguments, oracles.ATTENTION_IN_NUMBERS, call)


SIZES = {
    "n = m": (3, 3, 3, 3),
    "more keys than queries": (2, 5, 4, 4),
    "more queries than keys": (5, 2, 4, 4),
    "d_k and d_v differ": (3, 4, 5, 2),
    "a batch": (3, 5, 2, 6, 4),
    "a batch with heads": (4, 3, 5, 2, 2, 3),
}
"""Maps a description to n, m, d_k and d_v, followed by the leading dimensions."""


@pytest.mark.points(1.75)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_attention_backward_of_any_shape(problem, rng, sizes):
    """attention_backward returns the same gradients as autograd, for any shape"""
    arguments = inputs(rng, *sizes)
    q, k, v = (tuple(each.shape) for each in arguments[:3])
    call = f"attention_backward(q, k, v, grad) with q of shape {q}, k of shape {k}, v of shape {v}"
    check_attention(problem, arguments, oracles.attention_backward(*arguments), call)


@pytest.mark.points(0.75)
def test_attention_backward_of_the_worked_example(problem, rng):
    """attention_backward is right to ten digits for the worked example, also with a causal mask"""
    grad = rng.normal(4, 8, dtype=DOUBLE)
    arguments = [example.Q.double(), example.K.double(), example.V.double(), grad]
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    for mask, name in [((), ""), ((causal,), ", causal_mask")]:
        call = f"attention_backward(Q, K, V, grad{name}) of the worked example"
        expected = oracles.attention_backward(*arguments, *mask)
        check_attention(problem, [*arguments, *mask], expected, call, **TEN_DIGITS)


MASKS = [(3, 5), (1, 5), (5,), (2, 1, 3, 5), (1, 4, 1, 5)]


@pytest.mark.points(1)
@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_attention_backward_with_a_mask(problem, rng, shape):
    """attention_backward is right for any mask that broadcasts to the scores"""
    arguments = inputs(rng, 3, 5, 4, 2, 2, 4)
    single = torch.arange(5).expand(shape) == 1
    call = f"attention_backward(q, k, v, grad, mask) with a mask of shape {shape} and scores of "
    call += "shape (2, 4, 3, 5)"
    for mask, what in [(some_mask(rng, *shape), ""), (single, ", where only key 1 is allowed")]:
        expected = oracles.attention_backward(*arguments, mask)
        check_attention(problem, [*arguments, mask], expected, call + what)
    call = "attention_backward(q, k, v, grad, mask=None)"
    result = problem.attention_backward(*copies(arguments), mask=None)
    check_qkv(result, oracles.attention_backward(*arguments), call)


@pytest.mark.points(0.5)
def test_cost_of_attention_backward(problem, rng):
    """attention_backward takes at most six matrix products, and builds no Jacobian"""
    n, m, d = 40, 96, 8
    arguments = inputs(rng, n, m, d, d)
    call = f"attention_backward(q, k, v, grad) with n = {n}, m = {m}, d_k = d_v = {d}"
    with torch.no_grad(), counting() as cost:
        result = problem.attention_backward(*copies(arguments))
    check_qkv(result, oracles.attention_backward(*arguments), call)
    most = 6 * 2 * n * m * d
    checks.require(
        cost.operations <= most,
        f"{call}\nIt took {cost.operations:,} floating point operations; {most:,} are enough, for "
        "six products of n x d and d x m. Does your code build the Jacobian of the softmax?",
    )
    checks.require(
        cost.largest <= 3 * n * m,
        f"{call}\nIts largest tensor has {cost.largest:,} entries, and the weights have {n * m:,}. "
        "The Jacobian of a softmax has m x m entries for each row, and you don't need it.",
    )


# cross_entropy_backward


@pytest.mark.points(0.5)
def test_cross_entropy_backward_in_numbers(problem):
    """cross_entropy_backward gives the numbers of the README's example"""
    logits = torch.tensor([[math.log(2), math.log(6), math.log(2)], [0.0, 0.0, 0.0]])
    targets = torch.tensor([0, 2])
    call = f"cross_entropy_backward(tensor({logits.tolist()}), tensor({targets.tolist()}))"
    checks.check(problem.cross_entropy_backward(logits, targets), oracles.LOSS_IN_NUMBERS, call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_cross_entropy_backward_of_any_shape(problem, rng, shape):
    """cross_entropy_backward is right for logits of any shape"""
    logits = rng.normal(*shape)
    targets = torch.randint(shape[-1], shape[:-1], generator=rng.generator)
    call = f"cross_entropy_backward(logits, targets) with logits of shape {shape}"
    check_cross_entropy(problem, logits, targets, call)


def check_cross_entropy(problem, logits, targets, call):
    """Compare the result of cross_entropy_backward with slopes of the loss."""
    gradient = problem.cross_entropy_backward(logits.clone(), targets.clone())
    checks.check(gradient, oracles.cross_entropy_slopes(logits, targets), call)


@pytest.mark.points(0.75)
def test_targets_that_do_not_count(problem, rng):
    """The row of a target of -100 has the gradient 0, and the mean is over the other targets"""
    for shape, out in [((4, 5), [1, 3]), ((2, 3, 4), [0, 1, 4]), ((6, 3), [0, 1, 2, 3, 5])]:
        logits = rng.normal(*shape)
        targets = torch.randint(shape[-1], shape[:-1], generator=rng.generator)
        targets.view(-1)[out] = -100
        call = (
            f"cross_entropy_backward(logits, targets) with logits of shape {shape} and "
            f"{len(out)} targets of -100"
        )
        check_cross_entropy(problem, logits, targets, call)


# clip_gradients


SIDES = {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor([[12.0, 0.0], [0.0, 0.0]])}
"""Gradients with the norms 5 and 12. The norm of both together is 13."""


def ones_for(gradients):
    """Return parameters of ones, with the shapes of these gradients."""
    return small.parameters_of({name: torch.ones_like(g) for name, g in gradients.items()})


def clipped(problem, parameters, gradients, max_norm, call, judge=oracles.is_near):
    """Clip gradients of the parameters, check the returned norm, and return the new gradients."""
    small.set_gradients(parameters, gradients)
    norm = problem.clip_gradients(parameters.parameters(), max_norm)
    checks.check_that(norm, judge, call, oracles.norm(gradients))
    return small.gradients_in(parameters)


@pytest.mark.points(0.5)
def test_clip_in_numbers(problem):
    """Gradients with the norms 5 and 12, so 13 together, are halved by clipping to 6.5"""
    call = "clip_gradients(parameters, 6.5) with gradients whose norms are 5 and 12"
    parameters = ones_for(SIDES)
    before = small.weights_in(parameters)
    gradients = clipped(problem, parameters, SIDES, 6.5, call, oracles.is_near_float)
    check_named(gradients, oracles.clipped(SIDES, 6.5), call)
    check_named(small.weights_in(parameters), oracles.unchanged(before), call)


@pytest.mark.points(0.5)
def test_clip_never_scales_up(problem):
    """Gradients with a norm below the limit stay unchanged, and so do gradients of 0"""
    for size, max_norm in ((1, 13.5), (1, 100.0), (1e-5, 1.0), (0, 1.0)):
        gradients = {name: size * g for name, g in SIDES.items()}
        call = f"clip_gradients(parameters, {max_norm}) with gradients of norm {13 * size:g}"
        after = clipped(problem, ones_for(SIDES), gradients, max_norm, call)
        check_named(after, oracles.unchanged(gradients), call)


@pytest.mark.points(0.5)
def test_clip_passes_over_what_has_no_gradient(problem, rng):
    """clip_gradients skips parameters without a gradient"""
    parameters = small.parameters_of({name: rng.normal(3) for name in "abc"})
    gradients = {"a": rng.normal(3), "c": 2 * rng.normal(3)}
    call = "clip_gradients(parameters, 0.5) with three parameters, one of them without a gradient"
    after = clipped(problem, parameters, gradients, 0.5, call)
    missing = after.pop("b")
    check_named(after, oracles.clipped(gradients, 0.5), call)
    checks.require(missing is None, f"{call}\n`b` had no gradient, and has one now.")


# learning_rate


@pytest.mark.points(0.75)
def test_learning_rate_in_numbers(problem):
    """learning_rate rises in 10 steps to 1.0, then falls to 0.1 at step 110, and stays at 0.1"""
    for step in (0, 4, 9, 10, 35, 60, 109, 110, 500):
        call = f"learning_rate({step}, warmup=10, total=110, peak=1.0, floor=0.1)"
        rate = problem.learning_rate(step, 10, 110, 1.0, 0.1)
        checks.check_that(rate, oracles.is_near, call, oracles.RATES[step])


@pytest.mark.points(0.5)
def test_learning_rate_without_warmup(problem):
    """With a warmup of 0, learning_rate starts at the peak; arguments can be passed by name"""
    for step in (0, 1, 17, 39, 40, 41):
        call = f"learning_rate({step}, warmup=0, total=40, peak=0.003, floor=0.0)"
        plan = {"step": step, "warmup": 0, "total": 40, "peak": 0.003, "floor": 0.0}
        expected = oracles.learning_rate(**plan)
        checks.check_that(problem.learning_rate(**plan), oracles.is_near_float, call, expected)


# AdamW


@pytest.mark.points(0.5)
def test_adamw_in_numbers(problem):
    """The first step of AdamW has the size lr for gradients of any size, and weights decay"""
    parameters = small.parameters_of({"a": torch.tensor([1.0, 1.0, 2.0])})
    optimizer = problem.AdamW(parameters.parameters(), lr=0.1, weight_decay=0.5)
    small.set_gradients(parameters, {"a": torch.tensor([4.0, -0.001, 0.0])})
    call = "AdamW(parameters, lr=0.1, weight_decay=0.5).step() with a = [1, 1, 2] and gradients "
    call += "[4, -0.001, 0]"
    optimizer.step()
    checks.check(small.weights_in(parameters)["a"], oracles.ADAMW_IN_NUMBERS, f"`a` after {call}")


def check_adamw(problem, weights, gradients, call, lr=1e-3, *, near=NEAR, **options):
    """Compare the weights after each step of AdamW with the definition.

    Args:
        problem: the student's code.
        weights: the initial parameters, by name.
        gradients: the gradients of each step, by name.
        call: the call, as text.
        lr: the learning rate, or a list with the rate of each step. For a list, zero_grad is
            called before each step.
        near: allowed differences, as for `check`.
        options: the options of AdamW.
    """
    is_set = isinstance(lr, list)
    rates = lr if is_set else [lr] * len(gradients)
    parameters = small.parameters_of(weights)
    optimizer = problem.AdamW(parameters.parameters(), lr=rates[0], **options)
    for number, of_step in enumerate(gradients, 1):
        if is_set:
            optimizer.lr = rates[number - 1]
            optimizer.zero_grad()
        small.set_gradients(parameters, of_step)
        optimizer.step()
        sofar = {name: [g.get(name) for g in gradients[:number]] for name in weights}
        expected = {
            name: oracles.adamw(weight, sofar[name], lr=rates[:number], **options)
            for name, weight in weights.items()
        }
        check_named(small.weights_in(parameters), expected, f"step {number} of {call}", **near)


ADAMW = {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-8, "weight_decay": 0.1}


def as_text(options):
    """Return options as text, as in a call."""
    return ", ".join(f"{name}={value}" for name, value in options.items())


def random_steps(rng, steps, sizes=None, **shapes):
    """Return random weights of these shapes, and gradients for some steps, in float64.

    Args:
        rng: draws the numbers.
        steps: for each step, the names of the parameters that have a gradient.
        sizes: the standard deviation of the gradients in each step; by default 1.
        shapes: the shape of each parameter, by name.
    """
    weights = {name: rng.normal(*shape, dtype=DOUBLE) for name, shape in shapes.items()}
    gradients = [
        {name: size * rng.normal(*shapes[name], dtype=DOUBLE) for name in names}
        for names, size in zip(steps, sizes or [1] * len(steps), strict=True)
    ]
    return weights, gradients


@pytest.mark.points(1.25)
@pytest.mark.parametrize("size", [1.0, 1e-8])
def test_five_steps_of_adamw(problem, rng, size):
    """Five steps of AdamW are right, for gradients of size 1 and of 1e-8"""
    weights, gradients = random_steps(rng, ["ab"] * 5, [size] * 5, a=(2, 3), b=(4,))
    call = f"AdamW(parameters, {as_text(ADAMW)}) with gradients of size {size:g}"
    check_adamw(problem, weights, gradients, call, **ADAMW)


@pytest.mark.points(0.25)
def test_digits_of_adamw(problem, rng):
    """In float64, AdamW keeps twelve digits"""
    weights, gradients = random_steps(rng, ["ab"] * 5, a=(2, 3), b=(4,))
    call = f"AdamW(parameters, {as_text(ADAMW)}) in float64"
    check_adamw(problem, weights, gradients, call, near=TWELVE_DIGITS, **ADAMW)


@pytest.mark.points(0.25)
def test_defaults_of_adamw(problem, rng):
    """The defaults of AdamW are lr 1e-3, betas 0.9 and 0.999, eps 1e-8, weight decay 0.01"""
    weights, gradients = random_steps(rng, ["a"] * 12, a=(3,))
    parameters = small.parameters_of(weights)
    optimizer = problem.AdamW(parameters.parameters())
    for of_step in gradients:
        small.set_gradients(parameters, of_step)
        optimizer.step()
    expected = oracles.adamw(weights["a"], [g["a"] for g in gradients])
    call = "`a` after 12 steps of AdamW(parameters)"
    checks.check(small.weights_in(parameters)["a"], expected, call, rtol=0, atol=1e-9)


@pytest.mark.points(0.75)
def test_learning_rate_may_be_set(problem, rng):
    """Setting the attribute lr and calling zero_grad do not change the running means"""
    weights, gradients = random_steps(rng, ["ab"] * 3, a=(3,), b=(2,))
    call = "AdamW(parameters), with zero_grad and lr set to 0.1, 0.02 and 0 between the steps"
    check_adamw(problem, weights, gradients, call, lr=[0.1, 0.02, 0.0], weight_decay=0.2)


@pytest.mark.points(0.25)
def test_what_has_no_gradient_is_left_alone(problem, rng):
    """In a step, a parameter without a gradient stays unchanged, and so do its means"""
    weights, gradients = random_steps(rng, ["ab", "b", "ab"], a=(3,), b=(2,))
    call = f"AdamW(parameters, {as_text(ADAMW)}), where `a` has no gradient in the second step"
    check_adamw(problem, weights, gradients, call, **ADAMW)


@pytest.mark.points(0.25)
def test_zero_grad(problem, rng):
    """After zero_grad every gradient is None or 0, and parameters are unchanged"""
    weights = {"a": rng.normal(3), "b": rng.normal(2, 2)}
    parameters = small.parameters_of(weights)
    optimizer = problem.AdamW(parameters.parameters())
    small.set_gradients(parameters, {"a": weights["a"] + 1, "b": torch.full((2, 2), math.inf)})
    optimizer.zero_grad()
    call = "AdamW(parameters).zero_grad()"
    checks.check_that(small.gradients_in(parameters), oracles.are_cleared, call)
    check_named(small.weights_in(parameters), oracles.unchanged(weights), call)


REFUSED = [
    {"lr": -0.1},
    {"eps": -1e-8},
    {"weight_decay": -0.01},
    {"betas": (1.0, 0.999)},
    {"betas": (0.9, 1.0)},
    {"betas": (-0.1, 0.999)},
    {"betas": (0.9, -0.1)},
    {"betas": (0.9, 1.5)},
]


@pytest.mark.points(0.5)
@pytest.mark.parametrize("options", REFUSED, ids=as_text)
def test_impossible_options_are_refused(problem, options):
    """AdamW raises ValueError for a negative lr, eps or weight decay, or betas outside [0, 1)"""
    parameters = small.parameters_of({"a": torch.ones(2)})
    for fine in ({}, {"lr": 0.0, "eps": 0.0, "weight_decay": 0.0, "betas": (0.0, 0.0)}):
        try:
            problem.AdamW(parameters.parameters(), **fine)
        except ValueError:
            call = f"AdamW(parameters, {as_text(fine)})"
            checks.require(False, f"{call}\nIt raised ValueError; these options are valid.")
    call = f"AdamW(parameters, {as_text(options)})"
    example.check_refused(call, lambda: problem.AdamW(parameters.parameters(), **options))


# train_step


@pytest.mark.points(0.25)
@pytest.mark.parametrize("max_norm", [100.0, 0.25, 1.0], ids=["not clipped", "clipped", "default"])
def test_train_step_in_numbers(problem, rng, max_norm):
    """train_step takes one step with the clipped gradient, and returns the loss before the step"""
    weights = small.random_weights(rng, dtype=DOUBLE)
    steep = checks.prepared(lambda numbers: oracles.steep_batch(numbers, weights), rng)
    batch = steep if max_norm == 1.0 else small.random_batch(rng, 3, 5)
    options = {} if max_norm == 1.0 else {"max_norm": max_norm}
    call = f"train_step(model, idx, targets, optimizer, {as_text(options)})"
    loss = oracles.loss(weights, *batch)
    expected = oracles.after_sgd(weights, *batch, 0.5, max_norm)
    model = small.model_of(weights)
    optimizer = small.SGD(model.parameters(), 0.5)
    result = problem.train_step(model, *batch, optimizer, **options)
    checks.check_that(result, oracles.is_near_float, call, loss, 1e-9)
    check_named(small.weights_in(model), expected, f"{call}, with plain gradient descent")


@pytest.mark.points(1)
def test_gradients_begin_anew(problem, rng):
    """train_step clears earlier gradients, in each of several steps"""
    weights = small.random_weights(rng)
    call = "train_step(model, idx, targets, optimizer, max_norm)"
    model = small.model_of(weights)
    optimizer = small.SGD(model.parameters(), 0.3)
    small.set_gradients(model, {name: 3 + w for name, w in weights.items()})
    for number, max_norm in enumerate((1000.0, 1000.0, 1000.0, 0.2), 1):
        batch = small.random_batch(rng, 2, 4)
        weights = oracles.after_sgd(weights, *batch, 0.3, max_norm)
        problem.train_step(model, *batch, optimizer, max_norm=max_norm)
        check_named(small.weights_in(model), weights, f"{call}, step {number}")


@pytest.mark.points(0.5)
def test_a_model_learns_by_heart(problem, rng):
    """With your AdamW and train_step a small model learns three texts by heart"""
    length, vocab_size = 6, 7
    columns = [torch.randperm(vocab_size, generator=rng.generator)[:3] for _ in range(length)]
    idx = torch.stack(columns, dim=1)  # no two texts have the same token at a position
    targets = torch.randint(vocab_size, (3, length), generator=rng.generator)
    weights = small.random_weights(rng, n_embd=24)
    before, model = oracles.loss(weights, idx, targets), small.model_of(weights)
    optimizer = problem.AdamW(model.parameters(), lr=0.03)
    losses = [problem.train_step(model, idx.clone(), targets.clone(), optimizer) for _ in range(80)]
    call = "train_step(model, idx, targets, optimizer), 80 times with the same texts"
    checks.check_that((losses[0], losses[-1]), oracles.learns_by_heart, call, before)


# evaluate


BATCHES = [(1, 2), (3, 5), (2, 6)]


def evaluated(problem, model, batches, call):
    """Return the result of evaluate, after checking that the list of batches is unchanged."""
    copied = [(idx.clone(), targets.clone()) for idx, targets in batches]
    result = problem.evaluate(model, copied)
    checks.require(len(copied) == len(batches), f"{call}\nYour code changed the list of batches.")
    return result


@pytest.mark.points(0.5)
def test_evaluate_counts_every_token_alike(problem, rng):
    """evaluate returns the mean over all tokens, for batches of different sizes"""
    weights = small.random_weights(rng)
    weights["lm_head.bias"][0] += 20  # so that some losses are large
    batches = [small.random_batch(rng, *size) for size in BATCHES]
    idx = batches[0][0]
    worst = checks.prepared(lambda _: oracles.worst_targets(weights, idx), rng)
    batches[0] = (idx, worst)  # so the mean over all tokens is not the mean of the batches' means
    call = f"evaluate(model, batches) with batches of {' and '.join(map(str, BATCHES))} tokens"
    model = small.model_of(weights)
    one = f"evaluate(model, batches) with one batch of {BATCHES[0]} tokens"
    for some, text in [(batches, call), (batches[:1], one)]:
        expected = oracles.mean_loss(weights, some)
        checks.check_that(evaluated(problem, model, some, text), oracles.is_near, text, expected)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_evaluate_leaves_the_mode(problem, rng, training):
    """evaluate drops nothing, and does not change the model's mode, weights and gradients"""
    weights = small.random_weights(rng)
    batches = [small.random_batch(rng, 2, 5), small.random_batch(rng, 1, 4)]
    expected = oracles.mean_loss(weights, batches)
    model = small.model_of(weights, dropout=0.6).train(training)
    small.set_gradients(model, {name: w + 1 for name, w in weights.items()})
    before = small.gradients_in(model)
    call = "evaluate(model, batches) for a model with dropout of 0.6"
    with example.state_unchanged(call):
        loss = evaluated(problem, model, batches, call)
    checks.check_that(loss, oracles.is_near, f"{call}, which should drop nothing here", expected)
    mode = ["evaluation", "training"][training]
    checks.require(
        set(small.modes_in(model)) == {training},
        f"{call}\nThe model was in {mode} mode before; afterwards, some of its modules are not.",
    )
    check_named(small.weights_in(model), oracles.unchanged(weights), call)
    check_named(small.gradients_in(model), oracles.unchanged(before), call)


@pytest.mark.points(0.25)
def test_evaluate_records_no_gradients(problem, rng):
    """evaluate runs the model without recording gradients, and returns the loss as a float"""
    weights, batches = small.random_weights(rng), [small.random_batch(rng, 2, 5)]
    call, expected = "evaluate(model, batches)", oracles.mean_loss(weights, batches)
    with torch.inference_mode():  # PyTorch refuses to store such weights for a backward pass
        model = small.model_of(weights)
    was_refused = False
    try:
        problem.evaluate(model, [*batches])
    except RuntimeError as error:
        was_refused = "saved for backward" in str(error)
        # requires_grad_() raises an error about an inference tensor
        if not was_refused and "inference tensor" not in str(error):
            raise
    checks.check_that(was_refused, oracles.records_nothing, call)
    checks.check_that(
        problem.evaluate(small.model_of(weights), batches), oracles.is_near_float, call, expected
    )


# The first three functions


BACKWARD = ("softmax_backward", "attention_backward", "cross_entropy_backward")


def call_of(problem, right, rng, name, dtype=DOUBLE, rows=3, entries=4):
    """Return a `robust.Call` of one of BACKWARD; `right` is the module with the oracles."""
    *qkv, grad = inputs(rng, rows, entries, 5, 2, 2, dtype=dtype)
    logits, slope = rng.normal(2, 2, rows, entries, dtype=dtype)
    targets = torch.randint(entries, (2, rows), generator=rng.generator)
    if rows > 1:
        targets[0, 1] = -100
    arguments = {
        "softmax_backward": {"weights": logits.softmax(-1), "grad": slope},
        "attention_backward": dict(zip("qkv", qkv, strict=True))
        | {"grad": grad, "mask": some_mask(rng, rows, entries)},
        "cross_entropy_backward": {"logits": logits, "targets": targets},
    }[name]
    compare = check_qkv if name == "attention_backward" else checks.check
    functions = getattr(problem, name), arguments, getattr(right, name)
    return robust.Call(f"{name}({', '.join(arguments)})", *functions, compare=compare)


@pytest.mark.points(1)
@robust.parts("float32", "float64", "sizes of one", *robust.KEPT)
@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_in_use(problem, rng, name, part):
    """The first three functions follow the rules for all problems"""
    call = partial(call_of, problem, oracles, rng, name)
    robust.check_part(part, rng, call, sizes="rows entries", other={"rows": 5})


@pytest.mark.points(0.25)
def test_large_scores_and_logits(problem, rng):
    """Results are right for scores and logits in the thousands"""
    q, k, v, grad = inputs(rng, 3, 4, 5, 2)
    arguments = [2000 * q, k, v, grad]
    call = "attention_backward(q, k, v, grad) with scores in the thousands"
    check_attention(problem, arguments, oracles.attention_backward(*arguments), call)
    logits, targets = rng.normal(3, 4) + 3000, torch.tensor([0, 3, 1])
    call = "cross_entropy_backward(logits, targets) with logits of shape (3, 4) near 3000"
    check_cross_entropy(problem, logits, targets, call)


@pytest.mark.points(1)
@pytest.mark.inspection_only
def test_every_gradient_is_your_own(problem, rng):
    """The first three functions are written without backward, torch.autograd and torch.func"""
    for name in BACKWARD:
        call_of(problem, oracles, rng, name).check()


# --- hidden tests ---


from shared.oracles import hidden_training as hidden_oracles  # noqa: E402

MORE_SHAPES = [(9,), (2, 8), (5, 1, 6), (3, 2, 2, 4), (4, 1), (70, 3)]


@pytest.mark.points(1.25)
@pytest.mark.parametrize("shape", MORE_SHAPES, ids=str)
def test_hidden_softmax_backward(problem, solution, rng, shape):
    """softmax_backward is right for other shapes, also if one weight of a row is nearly 1"""
    for size, dtype in [(1, torch.float32), (3, DOUBLE), (1000, DOUBLE)]:
        weights = (size * rng.normal(*shape, dtype=DOUBLE)).softmax(-1).to(dtype)
        grad = 10 * rng.normal(*shape, dtype=dtype)
        call = f"softmax_backward(weights, grad) with scores of size {size}, shape {shape}"
        expected = solution.softmax_backward(weights, grad)
        actual = problem.softmax_backward(example.turned(weights), grad.clone())
        checks.check(actual, expected, call)


MORE_SIZES = [
    (1, 1, 3, 2),
    (1, 7, 3, 5),
    (6, 1, 2, 4),
    (2, 9, 1, 1, 3),
    (5, 4, 3, 7, 2, 1, 3),
    (24, 24, 6, 5),
    (2, 3, 70, 65),
]


@pytest.mark.points(2.75)
@pytest.mark.parametrize("sizes", MORE_SIZES, ids=str)
def test_hidden_attention_backward(problem, solution, rng, sizes):
    """attention_backward is right for other shapes: one key, one query, more leading dimensions"""
    for dtype in (torch.float32, DOUBLE):
        arguments = inputs(rng, *sizes, dtype=dtype)
        q, k, v = (tuple(each.shape) for each in arguments[:3])
        call = f"attention_backward(q, k, v, grad) with q of shape {q}, k of shape {k}, "
        call += f"v of shape {v}"
        check_attention(problem, arguments, solution.attention_backward(*arguments), call)


@pytest.mark.points(0.75)
def test_hidden_large_scores(problem, solution, rng):
    """attention_backward is right for scores up to 1e5, and masked scores have no effect"""
    q, k, v, grad = inputs(rng, 5, 6, 4, 3, 2)
    causal = torch.ones(5, 6, dtype=torch.bool).tril()
    for size in (1000.0, -1000.0, 1e5):
        large = [q * size * 2, k, v, grad]
        shifted = [torch.cat([q, q.new_full((2, 5, 1), size)], -1)]
        shifted += [torch.cat([k, k.new_full((2, 6, 1), 5.0)], -1), v, grad]
        for arguments, masks in itertools.product((large, shifted), ([], [causal])):
            call = f"attention_backward(q, k, v, grad{', mask' if masks else ''}) with scores near "
            call += f"{size:g}"
            expected = solution.attention_backward(*arguments, *masks)
            check_attention(problem, [*arguments, *masks], expected, call, rtol=1e-4, atol=1e-3)


@pytest.mark.points(1)
@pytest.mark.parametrize("shape", [(1, 4), (9, 2), (2, 3, 2, 5), (2, 70), (3, 1)], ids=str)
def test_hidden_cross_entropy_backward(problem, solution, rng, shape):
    """cross_entropy_backward is right for other shapes, logits near 1000, and targets of -100"""
    for shift in (0, 1000, -1000):
        logits = rng.normal(*shape, dtype=DOUBLE) + shift
        targets = torch.randint(shape[-1], shape[:-1], generator=rng.generator)
        some = targets.clone()
        some.view(-1)[1:] = torch.where(
            rng.normal(targets.numel() - 1) > 0, -100, some.view(-1)[1:]
        )
        for each in (targets, some):
            call = f"cross_entropy_backward(logits, targets) with logits of shape {shape} near "
            call += f"{shift}"
            arguments = (example.turned(logits), example.turned(each))
            expected = solution.cross_entropy_backward(logits, each)
            checks.check(problem.cross_entropy_backward(*arguments), expected, call)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("number", "size", "part"),
    [(5, 20, 0.5), (2, 100, 0.01), (3, 1, 0.9), (4, 0.3, 0.3), (4, 5, 0.99)],
)
def test_hidden_clip(problem, rng, number, size, part):
    """clip_gradients is right for several parameters, large and small gradients, and any limit"""
    shapes = [(3,), (2, 4), (1,), (2, 1, 3), (5,)][:number]
    gradients = {f"w{n}": size * rng.normal(*shape) for n, shape in enumerate(shapes)}
    for times in (part, 1.01, 3):
        limit = checks.prepared(partial(hidden_oracles.clipping_limit, gradients, times), rng)
        call = f"clip_gradients(parameters, {limit}) with gradients of size {size:g}"
        after = clipped(problem, ones_for(gradients), gradients, limit, call)
        check_named(after, oracles.clipped(gradients, limit), call, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.points(0.75)
def test_hidden_learning_rate(problem, rng):
    """learning_rate is right for other arguments, also for a warmup of one step"""
    plans = [(1, 30, 0.5, 0.2), (7, 8, 3e-4, 3e-5), (0, 1, 0.01, 0.001), (300, 5000, 6e-3, 6e-4)]
    for warmup, total, peak, floor in plans:
        middle = (warmup + total) // 2
        steps = {0, 1, warmup // 2, warmup, middle, middle + 1, total - 1, total, total + 1}
        for step in sorted(steps | {max(warmup - 1, 0), 3 * total}):
            call = f"learning_rate({step}, {warmup}, {total}, {peak}, {floor})"
            rate = problem.learning_rate(step, warmup, total, peak, floor)
            expected = oracles.learning_rate(step, warmup, total, peak, floor)
            checks.check_that(rate, oracles.is_near, call, expected, 0, 1e-5 * peak)


OTHER_OPTIONS = [
    {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-2, "weight_decay": 0.0},
    {"lr": 0.2, "betas": (0.0, 0.9), "eps": 1e-8, "weight_decay": 0.3},
    {"lr": 0.03, "betas": (0.5, 0.0), "eps": 1e-6, "weight_decay": 1.0},
]


@pytest.mark.points(2.25)
@pytest.mark.parametrize("options", OTHER_OPTIONS, ids=as_text)
def test_hidden_adamw(problem, rng, options):
    """AdamW is right with other options, and for gradients of different sizes"""
    weights = {"a": rng.normal(2, 2, dtype=DOUBLE), "b": rng.normal(3, dtype=DOUBLE)}
    # With beta2 = 0, `v += (1 - beta2) * (g**2 - v)` is right but loses digits when gradients
    # become much smaller. So no gradient is near 0 if beta2 is 0.
    keeps_squares = options["betas"][1] > 0
    sizes = (1, 1e-3, 30, 1e-6, 1, 1) if keeps_squares else (1, 0.3, 2, 0.5, 1, 1)
    gradients = []
    for size in sizes:
        drawn = {name: rng.normal(*w.shape, dtype=DOUBLE) for name, w in weights.items()}
        far = {name: size * (d if keeps_squares else d + d.sign()) for name, d in drawn.items()}
        gradients.append(far)
    check_adamw(problem, weights, gradients, f"AdamW(parameters, {as_text(options)})", **options)


@pytest.mark.points(1)
def test_hidden_parameters_without_gradients(problem, rng):
    """AdamW is right for parameters that have a gradient only in some steps, or a gradient of 0"""
    shapes = dict.fromkeys("abcd", (3,))
    weights, gradients = random_steps(rng, ["ab", "a", "abc", "", "bc"], **shapes)
    gradients += [dict.fromkeys("ad", torch.zeros(3, dtype=DOUBLE))]  # the first gradient of d
    call = f"AdamW(parameters, {as_text(ADAMW)}), where some parameters have no gradient"
    check_adamw(problem, weights, gradients, call, **ADAMW)


@pytest.mark.points(0.75)
def test_hidden_steps_with_adamw(problem, rng):
    """Several calls of train_step with AdamW are right, and each clears earlier gradients"""
    weights, sofar = small.random_weights(rng, dtype=DOUBLE), []
    options = {"lr": 0.02, "weight_decay": 0.1, "betas": (0.9, 0.95)}
    model, now = small.model_of(weights), weights
    optimizer = problem.AdamW(model.parameters(), **options)
    for number in range(1, 5):
        batch = small.random_batch(rng, 1 + number, 4)
        loss = oracles.loss(now, *batch)
        sofar.append(oracles.gradients(now, *batch))
        now = {n: oracles.adamw(w, [g[n] for g in sofar], **options) for n, w in weights.items()}
        call = f"train_step number {number} with AdamW(parameters, {as_text(options)})"
        result = problem.train_step(model, *batch, optimizer, max_norm=1000.0)
        checks.check_that(result, oracles.is_near, call, loss)
        check_named(small.weights_in(model), now, call, rtol=1e-5, atol=1e-5)


@pytest.mark.points(1.5)
def test_hidden_train_step(problem, rng):
    """train_step is right for other models and batches, with norms above and below the limit"""
    for number, dtype in enumerate((torch.float32, DOUBLE, torch.float32)):
        weights = small.random_weights(rng, 11, 9, 5, dtype=dtype)
        weights["lm_head.bias"][0] += 20 * number  # the losses of all but one model are large
        batch = small.random_batch(rng, 1 + number, 9 - number, 11)
        slopes, loss = oracles.gradients(weights, *batch), oracles.loss(weights, *batch)
        for part in (0.02, 0.3, 0.999, 1.2):
            limit = checks.prepared(partial(hidden_oracles.clipping_limit, slopes, part), rng)
            expected = oracles.after_sgd(weights, *batch, 0.2, limit)
            model = small.model_of(weights)
            small.set_gradients(model, {name: w - 2 for name, w in weights.items()})
            call = "train_step(model, idx, targets, optimizer, max_norm) with gradients whose norm "
            call += f"is {1 / part:.1f} times max_norm"
            optimizer = small.SGD(model.parameters(), 0.2)
            result = problem.train_step(model, *copies(batch), optimizer, max_norm=limit)
            checks.check_that(result, oracles.is_near, call, loss)
            check_named(small.weights_in(model), expected, call)


@pytest.mark.points(0.25)
def test_hidden_dropout_in_training(problem, rng):
    """In train_step a model's dropout is active, and afterwards the model is in training mode"""
    weights, batch = small.random_weights(rng, n_embd=16), small.random_batch(rng, 3, 6)
    call = "train_step(model, idx, targets, optimizer) with dropout of 0.5"
    losses = []
    for seed in (1, 2, 1, 2):
        model = small.model_of(weights, dropout=0.5)
        torch.default_generator.manual_seed(seed)
        optimizer = small.SGD(model.parameters(), 0.1)
        losses.append(problem.train_step(model, *copies(batch), optimizer))
        checks.require(
            all(small.modes_in(model)), f"{call}\nThe model is no longer in training mode."
        )
    whole = oracles.loss(weights, *batch)
    checks.check_that(losses, hidden_oracles.drop_activations, call, whole)


@pytest.mark.points(0.75)
def test_hidden_evaluate(problem, rng):
    """evaluate is right for many batches, in both modes, and after steps of training"""
    weights = small.random_weights(rng, dtype=DOUBLE)
    model = small.model_of(weights, dropout=0.3)
    optimizer = small.SGD(model.parameters(), 0.1)
    batches = [small.random_batch(rng, *size) for size in [(1, 1), (4, 6), (2, 3), (1, 6), (5, 2)]]
    idx = batches[1][0]
    batches[1] = (idx, checks.prepared(lambda _: oracles.worst_targets(weights, idx), rng))
    for mode in (True, False, True):
        model.train(mode)
        before = small.weights_in(model)
        call = f"evaluate(model, batches) in {'training' if mode else 'evaluation'} mode"
        loss = evaluated(problem, model, batches, call)
        checks.check_that((loss, before), hidden_oracles.is_mean_loss, call, batches)
        checks.require(
            set(small.modes_in(model)) == {mode}, f"{call}\nIt left the model in the other mode."
        )
        problem.train_step(model, *(each.clone() for each in batches[2]), optimizer)
        before = small.weights_in(model)
        call = f"{call}, after a step of training"
        loss = evaluated(problem, model, batches[1:], call)
        checks.check_that((loss, before), hidden_oracles.is_mean_loss, call, batches[1:])
