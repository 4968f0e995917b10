"""Tests of problem 10. Run them with `uv run pytest` in this folder."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from grader.code.cost import counting
from grader.run.calls import answers
from grader.run.compare import check, check_form, check_number, require
from shared.oracles.attention import attend_by_hand, softmax_by_hand
from shared.oracles.gpt import cross_entropy_by_hand
from shared.worked_example import (
    K,
    Q,
    V,
    check_refused,
    check_slopes,
    derivative,
    left_alone,
    nothing_left_behind,
    turned,
)

DOUBLE = torch.float64

TEN_DIGITS = {"rtol": 1e-10, "atol": 1e-10}
"""How near gradients must be in float64; rounding alone makes 1e-15."""

TWELVE_DIGITS = {"rtol": 1e-12, "atol": 1e-12}
"""How near parameters must be in float64 after some steps of AdamW."""


# The definition, in lists of numbers.


def softmax_backward_by_hand(weights, grad):
    """Score i changes weight j by w_j (1 - w_i) if they are the same one, else by -w_j w_i."""
    return [
        sum(
            g * w_j * ((i == j) - w_i) for j, (w_j, g) in enumerate(zip(weights, grad, strict=True))
        )
        for i, w_i in enumerate(weights)
    ]


def cross_entropy_backward_by_hand(logits, targets):
    """Nudge each logit, and look how the mean loss changes."""
    slopes = []
    for row, logit in itertools.product(range(len(logits)), range(len(logits[0]))):

        def nudged(step, row=row, logit=logit):
            moved = [[*each] for each in logits]
            moved[row][logit] += step
            return cross_entropy_by_hand(moved, targets)

        slopes.append(derivative(nudged))
    return slopes


def learning_rate_by_hand(step, warmup, total, peak, floor):
    """Up along a line; then the cosine of an angle that goes from 0 to 180 degrees."""
    if step < warmup:
        return (step + 1) * peak / warmup
    angle = math.pi * min(1, (step - warmup) / (total - warmup))
    return floor + (peak - floor) * (math.cos(angle) + 1) / 2


def adamw_by_hand(number, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    """What a parameter of one number becomes by some gradients; one that is None changes nothing.

    `lr` may be a list, with a learning rate for each.
    """
    mean = square = steps = 0
    rates = lr if isinstance(lr, list) else [lr] * len(gradients)
    for rate, gradient in zip(rates, gradients, strict=True):
        if gradient is None:
            continue
        steps += 1
        number -= rate * weight_decay * number
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient**2
        corrected = mean / (1 - betas[0] ** steps), square / (1 - betas[1] ** steps)
        number -= rate * corrected[0] / (math.sqrt(corrected[1]) + eps)
    return number


# What the tests compare with beside that: PyTorch's gradients.


def by_rows(by_hand, *tensors):
    """Apply a function of lists to each row of some tensors, in float64."""
    rows = [t.double().reshape(-1, t.shape[-1]).tolist() for t in tensors]
    found = [by_hand(*row) for row in zip(*rows, strict=True)]
    return torch.tensor(found, dtype=DOUBLE).reshape(tensors[0].shape).to(tensors[0].dtype)


def weights_of(q, k, mask=None):
    """The attention weights, written out."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def gradients_by_autograd(q, k, v, grad, mask=None):
    """What autograd says of an attention."""
    leaves = [each.detach().clone().requires_grad_() for each in (q, k, v)]
    with torch.enable_grad():
        output = weights_of(*leaves[:2], mask) @ leaves[2]
    return torch.autograd.grad((output * grad).sum(), leaves)


NAMES = ("q", "k", "v")


def three(found, call):
    """The three gradients that a call returned."""
    many = isinstance(found, tuple | list)
    kind = f"a {type(found).__name__}{f' of {len(found)}' if many else ''}"
    message = f"{call}\nIt should return three gradients, (dq, dk, dv); it returned {kind}."
    require(many and len(found) == 3, message)
    return dict(zip(NAMES, found, strict=True))


def returned(function, given, call, change=torch.Tensor.clone):
    """What a function returns for copies of some arguments, by name.

    A mask or targets that were changed are reported at once, as they are when code is graded.
    """
    copies = {name: change(tensor) for name, tensor in given.items()}
    found = function(*copies.values())
    for name, tensor in given.items():
        same = tensor.is_floating_point() or torch.equal(copies[name], tensor)
        require(same, f"{call}\nYour code changed its argument {name}.")
    return found


def check_attention(problem, given, expected, call, **near):
    """Compare the three gradients of an attention. What is handed over are copies.

    Args:
        problem: the student's code.
        given: q, k, v, the gradient of the output, and perhaps a mask.
        expected: the gradients of q, k and v.
        call: what was called.
        near: allowed differences, as for `check`.
    """
    named = dict(zip(("q", "k", "v", "grad", "mask"), given, strict=False))
    found = three(returned(problem.attention_backward, named, call), call)
    for (name, gradient), right in zip(found.items(), expected, strict=True):
        check(gradient, right, f"d{name} of {call}", **near)


def inputs(rng, n, m, d_k, d_v, *batch, dtype=DOUBLE):
    """Random q, k and v, and the gradient of a loss with respect to the output."""
    shapes = (n, d_k), (m, d_k), (m, d_v), (n, d_v)
    return [rng.normal(*batch, *shape, dtype=dtype) for shape in shapes]


def some_mask(rng, *shape):
    """A random mask by which each query may attend to some keys, and not to the last."""
    mask = rng.normal(*shape) > 0
    if shape[-1] > 1:
        mask[..., -1] = False
    mask[..., 0] |= ~mask.any(-1)
    return mask


# A model with known weights, and what becomes of them.


def random_weights(rng, vocab_size=7, n_positions=6, n_embd=4, dtype=torch.float32):
    """Weights of a SmallModel, whose loss is far from the smallest."""
    shapes = {
        "wte.weight": (vocab_size, n_embd),
        "wpe.weight": (n_positions, n_embd),
        "hidden.weight": (n_embd, n_embd),
        "hidden.bias": (n_embd,),
        "lm_head.weight": (vocab_size, n_embd),
        "lm_head.bias": (vocab_size,),
    }
    return {name: rng.normal(*shape, dtype=dtype) for name, shape in shapes.items()}


def random_batch(rng, batch, length, vocab_size=7):
    """Random tokens and targets, each (batch, length)."""
    drawn = torch.randint(vocab_size, (2, batch, length), generator=rng.generator)
    return drawn[0], drawn[1]


def loss_of(weights, idx, targets):
    """The mean loss of a SmallModel with these weights, without dropout."""
    x = weights["wte.weight"][idx] + weights["wpe.weight"][: idx.shape[1]]
    x = torch.tanh(x @ weights["hidden.weight"].T + weights["hidden.bias"])
    logits = x @ weights["lm_head.weight"].T + weights["lm_head.bias"]
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def gradients_of(weights, idx, targets):
    """The gradients of that, by name."""
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    found = torch.autograd.grad(loss_of(leaves, idx, targets), list(leaves.values()))
    return dict(zip(leaves, found, strict=True))


def norm_of(gradients):
    """The norm of all gradients together."""
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values()))


def after_sgd(weights, idx, targets, lr, max_norm):
    """The weights after a step of plain gradient descent with clipped gradients."""
    gradients = gradients_of(weights, idx, targets)
    factor = min(1, max_norm / norm_of(gradients))
    return {name: w - lr * factor * gradients[name] for name, w in weights.items()}


def check_named(found, expected, call, **near):
    """Compare tensors by name."""
    for name, right in expected.items():
        check(found[name], right, f"`{name}` after {call}", **near)


def check_float(found, expected, call, share=1e-4):
    """Require a Python float near this one, by a share of it."""
    near = share * abs(expected) + 1e-6
    check_number(found, expected - near, expected + near, call, f"{expected:.7g}")


# softmax_backward


@pytest.mark.points(0.75)
def test_softmax_backward_in_numbers(problem):
    """softmax_backward gives the numbers of the README: w (g - sum of g w)"""
    weights = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    grad = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    expected = torch.tensor([[0.1875, -0.1875], [-0.5, 0.5]])
    call = f"softmax_backward({weights.tolist()}, {grad.tolist()})"
    check(problem.softmax_backward(weights, grad), expected, call)


SHAPES = [(4,), (3, 5), (4, 4), (2, 3, 5), (2, 1, 2, 6)]
"""The last number is how many scores a row has; what stands before it may be anything."""


@pytest.mark.points(1)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_backward_of_any_shape(problem, rng, shape):
    """softmax_backward follows the definition, row by row"""
    weights = by_rows(softmax_by_hand, rng.normal(*shape))
    grad = rng.normal(*shape)
    call = f"softmax_backward(weights, grad) with weights of shape {shape}"
    expected = by_rows(softmax_backward_by_hand, weights, grad)
    check(problem.softmax_backward(weights.clone(), grad.clone()), expected, call)


@pytest.mark.points(0.5)
def test_rows_sum_to_zero(problem, rng):
    """Each row sums to 0, as the same number added to all scores changes nothing"""
    weights = by_rows(softmax_by_hand, rng.normal(2, 4, 6, dtype=DOUBLE))
    grad = rng.normal(2, 4, 6, dtype=DOUBLE)
    call = "softmax_backward(weights, grad)"
    found = problem.softmax_backward(weights, grad)
    check(found, by_rows(softmax_backward_by_hand, weights, grad), call)
    sums = torch.zeros(2, 4, dtype=DOUBLE)
    check(found.sum(-1), sums, f"{call}.sum(-1)", atol=1e-6)
    moved = problem.softmax_backward(weights, grad + rng.normal(2, 4, 1, dtype=DOUBLE))
    told = f"{call} with a number added to each row of grad, compared with none"
    check(moved, found.clone(), told)


LEFT = {
    (64, True): (0.0577, 0.005),
    (256, True): (0.0577, 0.005),
    (1024, True): (0.0577, 0.005),
    (64, False): (0.018, 0.004),
    (256, False): (0.0094, 0.0025),
    (1024, False): (0.0047, 0.0015),
}
"""What is left of a gradient, by d_k and whether scores are scaled: about that, and how near."""


@pytest.mark.points(0.5)
def test_what_is_left_of_the_gradient(problem, rng):
    """Scaled, the softmax lets through as much at every d_k; not scaled, ever less: it vanishes"""
    for (d_k, is_scaled), (share, near) in LEFT.items():
        q, k = rng.normal(40, 40, d_k), rng.normal(40, 16, d_k)
        scores = q @ k.mT / (math.sqrt(d_k) if is_scaled else 1)
        powers = (scores - scores.amax(-1, keepdim=True)).exp()
        weights, grad = powers / powers.sum(-1, keepdim=True), rng.normal(40, 40, 16)
        found = problem.softmax_backward(weights, grad.clone())
        check_form(found, grad, "softmax_backward(weights, grad)")
        left = float(found.abs().sum() / grad.abs().sum())
        call = (
            f"softmax_backward for scores of random queries and keys, d_k = {d_k}, "
            f"{'scaled' if is_scaled else 'not scaled'}: what is left of the gradient"
        )
        check_number(left, share - near, share + near, call, f"about {share:.1%}")


# attention_backward


@pytest.mark.points(0.75)
def test_attention_backward_in_numbers(problem):
    """attention_backward gives the numbers of the README's 2 x 2 example"""
    ln3 = math.log(3)
    given = [
        torch.tensor([[2.0, 0, 0, 0], [0, 2, 0, 0]]),
        torch.tensor([[ln3, 0, 0, 0], [0, 0, 0, 0]]),
        torch.tensor([[1.0, 0], [0, 1]]),
        torch.tensor([[1.0, 0], [0, 2]]),
    ]
    expected = [
        torch.tensor([[0.09375 * ln3, 0, 0, 0], [-0.25 * ln3, 0, 0, 0]]),
        torch.tensor([[0.1875, -0.5, 0, 0], [-0.1875, 0.5, 0, 0]]),
        torch.tensor([[0.75, 1], [0.25, 1]]),
    ]
    check_attention(problem, given, expected, "attention_backward(q, k, v, grad)")


@pytest.mark.points(0.75)
@pytest.mark.parametrize("causal", [False, True], ids=["all keys", "causal"])
def test_attention_backward_by_small_steps(problem, rng, causal):
    """attention_backward says how the output changes when q, k or v moves a little"""
    q, k, v, grad = inputs(rng, 4, 4, 3, 2)
    given = {"q": q, "k": k, "v": v, "grad": grad}
    given |= {"mask": torch.ones(4, 4, dtype=torch.bool).tril()} if causal else {}
    call = f"attention_backward(q, k, v, grad{', causal_mask' if causal else ''})"
    found = three(returned(problem.attention_backward, given, call), call)
    for name, like in zip(NAMES, (q, k, v), strict=True):
        check_form(found[name], like, f"d{name} of {call}")
    numbers = dict(zip(NAMES, (q, k, v), strict=True))

    def value(moved):
        queries, keys, values = ((numbers | moved)[name].tolist() for name in NAMES)
        seen = [i + 1 if causal else 4 for i in range(4)]
        output = [
            attend_by_hand(query, keys[:n], values[:n])
            for query, n in zip(queries, seen, strict=True)
        ]
        return (torch.tensor(output, dtype=DOUBLE) * grad).sum()

    check_slopes(found, value, numbers, call, rng)


SIZES = {
    "n = m": (3, 3, 3, 3),
    "more keys than queries": (2, 5, 4, 4),
    "more queries than keys": (5, 2, 4, 4),
    "d_k and d_v differ": (3, 4, 5, 2),
    "a batch": (3, 5, 2, 6, 4),
    "a batch with heads": (4, 3, 5, 2, 2, 3),
}
"""n, m, d_k and d_v, and what stands before them."""


@pytest.mark.points(1.25)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_attention_backward_of_any_shape(problem, rng, sizes):
    """attention_backward has autograd's numbers to ten digits, whatever the shape"""
    given = inputs(rng, *sizes)
    q, k, v = (tuple(each.shape) for each in given[:3])
    call = f"attention_backward(q, k, v, grad) with q {q}, k {k}, v {v}"
    check_attention(problem, given, gradients_by_autograd(*given), call, **TEN_DIGITS)


@pytest.mark.points(0.75)
def test_attention_backward_of_the_worked_example(problem, rng):
    """attention_backward has autograd's numbers for the 4 x 8 example, causal and not"""
    grad = rng.normal(4, 8, dtype=DOUBLE)
    given = [Q.double(), K.double(), V.double(), grad]
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    for mask, told in [((), ""), ((causal,), ", causal_mask")]:
        call = f"attention_backward(Q, K, V, grad{told}) of the worked example"
        expected = gradients_by_autograd(*given, *mask)
        check_attention(problem, [*given, *mask], expected, call, **TEN_DIGITS)


MASKS = [(3, 5), (1, 5), (5,), (2, 1, 3, 5), (1, 4, 1, 5)]


@pytest.mark.points(0.5)
@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_attention_backward_with_a_mask(problem, rng, shape):
    """attention_backward takes any mask that broadcasts to the scores"""
    given = inputs(rng, 3, 5, 4, 2, 2, 4)
    mask = some_mask(rng, *shape)
    call = f"attention_backward(q, k, v, grad, mask) with a mask {shape} for scores (2, 4, 3, 5)"
    expected = gradients_by_autograd(*given, mask)
    check_attention(problem, [*given, mask], expected, call)
    found = problem.attention_backward(*(each.clone() for each in given), mask=None)
    check(three(found, call)["q"], gradients_by_autograd(*given)[0], f"dq of {call}, mask=None")


@pytest.mark.points(0.5)
def test_cost_of_attention_backward(problem, rng):
    """attention_backward takes at most six products of matrices, and never a whole Jacobian"""
    n, m, d = 40, 96, 8
    given = inputs(rng, n, m, d, d)
    call = f"attention_backward(q, k, v, grad) with n = {n}, m = {m}, d_k = d_v = {d}"
    with torch.no_grad(), counting() as cost:
        found = problem.attention_backward(*(each.clone() for each in given))
    for (name, gradient), right in zip(
        three(found, call).items(), gradients_by_autograd(*given), strict=True
    ):
        check(gradient, right, f"d{name} of {call}")
    most = 6 * 2 * n * m * d
    require(
        cost.operations <= most,
        f"{call}\nIt took {cost.operations:,} floating point operations; {most:,} are enough, six "
        "products of n x d and d x m. Is the whole Jacobian of the softmax built?",
    )
    require(
        cost.largest <= 3 * n * m,
        f"{call}\nIts largest tensor has {cost.largest:,} entries, where the weights have "
        f"{n * m:,}. The Jacobian of a softmax has m x m entries for each row; it is "
        "never needed as a whole.",
    )


# cross_entropy_backward


@pytest.mark.points(0.5)
def test_cross_entropy_backward_in_numbers(problem):
    """cross_entropy_backward gives the numbers of the README: probabilities less 1 at the target"""
    logits = torch.tensor([[math.log(2), math.log(6), math.log(2)], [0.0, 0.0, 0.0]])
    targets = torch.tensor([0, 2])
    third = 1 / 6
    expected = torch.tensor([[-0.4, 0.3, 0.1], [third, third, third - 0.5]])
    call = f"cross_entropy_backward(tensor({logits.tolist()}), tensor({targets.tolist()}))"
    given = {"logits": logits, "targets": targets}
    check(returned(problem.cross_entropy_backward, given, call), expected, call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_cross_entropy_backward_of_any_shape(problem, rng, shape):
    """cross_entropy_backward is the slope of the mean loss in each logit"""
    logits = rng.normal(*shape)
    targets = torch.randint(shape[-1], shape[:-1], generator=rng.generator)
    call = f"cross_entropy_backward(logits, targets) with logits of shape {shape}"
    check_cross_entropy(problem, logits, targets, call)


def check_cross_entropy(problem, logits, targets, call, **near):
    """Compare with the slopes of the loss."""
    rows = logits.double().reshape(-1, logits.shape[-1]).tolist()
    expected = cross_entropy_backward_by_hand(rows, targets.flatten().tolist())
    expected = torch.tensor(expected, dtype=DOUBLE).reshape(logits.shape).to(logits.dtype)
    given = {"logits": logits, "targets": targets}
    found = returned(problem.cross_entropy_backward, given, call)
    check(found, expected, call, **near)


@pytest.mark.points(0.75)
def test_targets_that_do_not_count(problem, rng):
    """A target of -100 gives its row no gradient, and the mean is over the others"""
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
"""Gradients whose norms are 5 and 12, together 13."""


def clipped(problem, gradients, max_norm, call):
    """A bench whose gradients were clipped, after the norm that was returned was looked at."""
    bench = problem.Bench({name: torch.ones_like(g) for name, g in gradients.items()}, sgd=0.1)
    bench.set_gradients(gradients)
    check_float(bench.clip(max_norm), norm_of(gradients), call)
    return bench


@pytest.mark.points(0.5)
def test_clip_in_numbers(problem):
    """Gradients with norms 5 and 12 have 13 together; clipped to 6.5 all are halved"""
    call = "clip_gradients(parameters, 6.5) with gradients whose norms are 5 and 12"
    bench = clipped(problem, SIDES, 6.5, call)
    found = bench.gradients()
    check_named(found, {name: g / 2 for name, g in SIDES.items()}, call)
    check_named(bench.weights(), {n: torch.ones_like(g) for n, g in SIDES.items()}, call)


@pytest.mark.points(0.5)
def test_clip_never_scales_up(problem):
    """Gradients whose norm is below the limit stay as they are, and so do gradients of 0"""
    for size, max_norm in ((1, 13.5), (1, 100.0), (0, 1.0)):
        gradients = {name: size * g for name, g in SIDES.items()}
        call = f"clip_gradients(parameters, {max_norm}) with gradients of norm {13 * size}"
        check_named(clipped(problem, gradients, max_norm, call).gradients(), gradients, call)


@pytest.mark.points(0.5)
def test_clip_passes_over_what_has_no_gradient(problem, rng):
    """Parameters without a gradient are passed over"""
    weights = {name: rng.normal(3) for name in "abc"}
    bench = problem.Bench(weights, sgd=0.1)
    gradients = {"a": rng.normal(3), "c": 2 * rng.normal(3)}
    bench.set_gradients(gradients)
    call = "clip_gradients(parameters, 0.5) with three parameters, one of them without a gradient"
    norm = norm_of(gradients)
    check_float(bench.clip(0.5), norm, call)
    found = bench.gradients()
    check_named(found, {name: g * 0.5 / norm for name, g in gradients.items()}, call)
    require(found["b"] is None, f"{call}\n`b` had no gradient, and has one now.")


# learning_rate


RATES = {
    0: 0.1,
    4: 0.5,
    9: 1.0,
    10: 1.0,
    35: 0.8681981,
    60: 0.55,
    109: 0.1002220,
    110: 0.1,
    500: 0.1,
}
"""By step: 10 steps up to 1.0, then down to 0.1 at step 110."""


@pytest.mark.points(0.75)
def test_learning_rate_in_numbers(problem):
    """learning_rate goes up in 10 steps to 1.0, then down to 0.1 at step 110, and stays there"""
    for step, expected in RATES.items():
        call = f"learning_rate({step}, warmup=10, total=110, peak=1.0, floor=0.1)"
        check_float(problem.learning_rate(step, 10, 110, 1.0, 0.1), expected, call)


@pytest.mark.points(0.5)
def test_learning_rate_without_warmup(problem):
    """With a warmup of 0 it begins at the peak; arguments go by name, too"""
    for step in (0, 1, 17, 39, 40, 41):
        call = f"learning_rate({step}, warmup=0, total=40, peak=0.003, floor=0.0)"
        found = problem.learning_rate(step=step, warmup=0, total=40, peak=0.003, floor=0.0)
        check_float(found, learning_rate_by_hand(step, 0, 40, 0.003, 0.0), call)


# AdamW


@pytest.mark.points(0.5)
def test_adamw_in_numbers(problem):
    """The first step of AdamW is as long as lr, whatever the gradient's size, and weights decay"""
    bench = problem.Bench({"a": torch.tensor([1.0, 1.0, 2.0])}, lr=0.1, weight_decay=0.5)
    bench.set_gradients({"a": torch.tensor([4.0, -0.001, 0.0])})
    call = "AdamW(parameters, lr=0.1, weight_decay=0.5).step() with a = [1, 1, 2] and gradients "
    call += "[4, -0.001, 0]"
    bench.optimizer.step()
    check(bench.weights()["a"], torch.tensor([0.85, 1.05, 1.9]), f"`a` after {call}")


def check_adamw(problem, weights, gradients, call, lr=1e-3, near=None, **options):
    """Compare weights after each of some steps of AdamW with the definition.

    Args:
        problem: the student's code.
        weights: the parameters before, by name.
        gradients: for each step, those by name.
        call: what is called.
        lr: the learning rate, or that of each step.
        near: allowed differences, as for `check`.
        options: those of AdamW.
    """
    rates = lr if isinstance(lr, list) else None
    first = rates[0] if rates else lr
    bench = problem.Bench(weights, lr=first, **options)
    for number, given in enumerate(gradients):
        if rates:
            bench.set_lr(rates[number])
        bench.set_gradients(given)
        bench.optimizer.step()
        sofar = gradients[: number + 1]
        so_long = rates[: number + 1] if rates else lr
        expected = {
            name: adamw_of_tensor(w, [g.get(name) for g in sofar], lr=so_long, **options)
            for name, w in weights.items()
        }
        told = f"step {number + 1} of {call}"
        check_named(bench.weights(), expected, told, **(near or TWELVE_DIGITS))


def adamw_of_tensor(weight, gradients, **options):
    """What a parameter becomes by some gradients, number by number."""
    if not gradients:
        return weight
    columns = [[None] * weight.numel() if g is None else g.flatten().tolist() for g in gradients]
    rows = zip(weight.flatten().tolist(), zip(*columns, strict=True), strict=True)
    found = [adamw_by_hand(number, list(row), **options) for number, row in rows]
    return torch.tensor(found, dtype=weight.dtype).reshape(weight.shape)


ADAMW = {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-8, "weight_decay": 0.1}


def told(options):
    """How a student would write options."""
    return ", ".join(f"{name}={value}" for name, value in options.items())


@pytest.mark.points(1.5)
@pytest.mark.parametrize("size", [1.0, 1e-8])
def test_five_steps_of_adamw(problem, rng, size):
    """Five steps of AdamW are those of the definition, for gradients of size 1 and of 1e-8"""
    weights = {"a": rng.normal(2, 3, dtype=DOUBLE), "b": rng.normal(4, dtype=DOUBLE)}
    gradients = [
        {name: size * rng.normal(*w.shape, dtype=DOUBLE) for name, w in weights.items()}
        for _ in range(5)
    ]
    call = f"AdamW(parameters, {told(ADAMW)}) with gradients of size {size:g}"
    check_adamw(problem, weights, gradients, call, **ADAMW)


@pytest.mark.points(0.5)
def test_defaults_of_adamw(problem, rng):
    """AdamW has the usual options: lr 1e-3, betas 0.9 and 0.999, eps 1e-8, weight decay 0.01"""
    weights = {"a": rng.normal(3, dtype=DOUBLE)}
    gradients = [{"a": rng.normal(3, dtype=DOUBLE)} for _ in range(12)]
    bench = problem.Bench(weights)
    for given in gradients:
        bench.set_gradients(given)
        bench.optimizer.step()
    expected = adamw_of_tensor(weights["a"], [g["a"] for g in gradients])
    call = "`a` after 12 steps of AdamW(parameters)"
    check(bench.weights()["a"], expected, call, rtol=0, atol=1e-9)


@pytest.mark.points(0.25)
def test_learning_rate_may_be_set(problem, rng):
    """The attribute lr may be set between steps; what is kept of earlier gradients stays"""
    weights = {"a": rng.normal(3, dtype=DOUBLE), "b": rng.normal(2, dtype=DOUBLE)}
    gradients = [{n: rng.normal(*w.shape, dtype=DOUBLE) for n, w in weights.items()} for _ in "123"]
    call = "AdamW(parameters) whose lr is set to 0.1, 0.02 and 0 between the steps"
    check_adamw(problem, weights, gradients, call, lr=[0.1, 0.02, 0.0], weight_decay=0.2)


@pytest.mark.points(0.25)
def test_what_has_no_gradient_is_left_alone(problem, rng):
    """A parameter without a gradient stays as it is in a step, and so does what is kept of it"""
    weights = {"a": rng.normal(3, dtype=DOUBLE), "b": rng.normal(2, dtype=DOUBLE)}
    gradients = [
        {name: rng.normal(*weights[name].shape, dtype=DOUBLE) for name in names}
        for names in ("ab", "b", "ab")
    ]
    call = f"AdamW(parameters, {told(ADAMW)}), where `a` has no gradient in the second step"
    check_adamw(problem, weights, gradients, call, **ADAMW)


@pytest.mark.points(0.25)
def test_zero_grad(problem, rng):
    """After zero_grad every gradient is None, or 0; parameters stay as they are"""
    weights = {"a": rng.normal(3), "b": rng.normal(2, 2)}
    bench = problem.Bench(weights)
    bench.set_gradients({"a": weights["a"] + 1, "b": torch.full((2, 2), math.inf)})
    bench.optimizer.zero_grad()
    for name, gradient in bench.gradients().items():
        none = gradient is None or not gradient.any()
        require(
            none, f"AdamW(parameters).zero_grad()\nThe gradient of `{name}` is still {gradient}."
        )
    check_named(bench.weights(), weights, "AdamW(parameters).zero_grad()")


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
@pytest.mark.parametrize("options", REFUSED, ids=told)
def test_impossible_options_are_refused(problem, options):
    """AdamW raises ValueError for a negative lr, eps or weight decay, and betas outside [0, 1)"""
    weights = {"a": torch.ones(2)}
    for fine in ({}, {"lr": 0.0, "eps": 0.0, "weight_decay": 0.0, "betas": (0.0, 0.0)}):
        try:
            problem.Bench(weights, **fine)
        except ValueError:
            require(False, f"AdamW(parameters, {told(fine)})\nIt was refused; these are possible.")
    call = f"AdamW(parameters, {told(options)})"
    check_refused(call, lambda: problem.Bench(weights, **options))


# train_step


@pytest.mark.points(1)
@pytest.mark.parametrize("max_norm", [100.0, 0.25], ids=["not clipped", "clipped"])
def test_train_step_in_numbers(problem, rng, max_norm):
    """train_step takes one step along the clipped gradient, and returns the loss before it"""
    weights, (idx, targets) = random_weights(rng, dtype=DOUBLE), random_batch(rng, 3, 5)
    bench = problem.Bench(weights, sgd=0.5)
    call = f"train_step(model, idx, targets, optimizer, max_norm={max_norm})"
    found = bench.train_step(idx, targets, max_norm=max_norm)
    check_float(found, float(loss_of(weights, idx, targets)), call, share=1e-9)
    expected = after_sgd(weights, idx, targets, 0.5, max_norm)
    check_named(bench.weights(), expected, f"{call}, with plain gradient descent")


@pytest.mark.points(0.5)
def test_gradients_begin_anew(problem, rng):
    """train_step begins with new gradients, whatever was there, in each of several steps"""
    weights = random_weights(rng)
    bench, call = problem.Bench(weights, sgd=0.3), "train_step(model, idx, targets, optimizer)"
    bench.set_gradients({name: 3 + w for name, w in weights.items()})
    for number in range(3):
        idx, targets = random_batch(rng, 2, 4)
        bench.train_step(idx, targets, max_norm=1000.0)
        weights = after_sgd(weights, idx, targets, 0.3, 1000.0)
        check_named(bench.weights(), weights, f"{call}, step {number + 1}")
    while norm_of(gradients_of(weights, idx, targets)) < 1.5:
        idx, targets = random_batch(rng, 1, 1)
    bench.train_step(idx, targets)
    weights = after_sgd(weights, idx, targets, 0.3, 1.0)
    check_named(bench.weights(), weights, f"{call}, with the default max_norm of 1")


@pytest.mark.points(0.5)
def test_a_model_learns_by_heart(problem, rng):
    """With your AdamW and train_step a small model learns three texts by heart"""
    length, vocab_size = 6, 7
    columns = [torch.randperm(vocab_size, generator=rng.generator)[:3] for _ in range(length)]
    idx = torch.stack(columns, dim=1)  # no two texts have the same token at the same place
    targets = torch.randint(vocab_size, (3, length), generator=rng.generator)
    bench = problem.Bench(random_weights(rng, n_embd=24), lr=0.03)
    losses = answers(bench.train_step, [(idx, targets)] * 80)
    call = "train_step(model, idx, targets, optimizer), 80 times with the same texts"
    check_number(losses[0], 0.5, 40.0, call, "far above 0 at first")
    check_number(losses[-1], 0.0, 0.1, call, "below 0.1 in the end: they are known by heart")


# evaluate


BATCHES = [(1, 2), (3, 5), (2, 6)]


def mean_loss(weights, batches):
    """The mean over all tokens."""
    losses = [float(loss_of(weights, *batch)) * batch[0].numel() for batch in batches]
    return sum(losses) / sum(idx.numel() for idx, _ in batches)


def evaluated(bench, batches, call):
    """What evaluate returns, which leaves the list that it is given as it was."""
    given = [*batches]
    found = bench.evaluate(given)
    require(len(given) == len(batches), f"{call}\nYour code changed the list of batches.")
    return found


@pytest.mark.points(0.5)
def test_evaluate_counts_every_token_alike(problem, rng):
    """evaluate gives the mean over all tokens, in batches of unequal size"""
    weights = random_weights(rng)
    weights["lm_head.bias"][0] += 20  # so that some losses are large
    batches = [random_batch(rng, *size) for size in BATCHES]
    batches[0] = (batches[0][0], worst_targets(weights, batches[0][0]))  # so that it counts which
    call = f"evaluate(model, batches) with batches of {' and '.join(map(str, BATCHES))} tokens"
    bench = problem.Bench(weights, sgd=0.1)
    for some, told in [(batches, call), (batches[:1], f"{call[:24]} of one")]:
        check_float(evaluated(bench, some, told), mean_loss(weights, some), told)


def worst_targets(weights, idx):
    """For each token the target, one and the same, that has the largest loss."""
    losses = [float(loss_of(weights, idx, torch.full_like(idx, token))) for token in range(7)]
    return torch.full_like(idx, losses.index(max(losses)))


@pytest.mark.points(0.5)
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_evaluate_leaves_the_mode(problem, rng, training):
    """evaluate drops nothing, and leaves mode, weights and gradients of the model as they were"""
    weights, batches = random_weights(rng), [random_batch(rng, 2, 5), random_batch(rng, 1, 4)]
    bench = problem.Bench(weights, dropout=0.6, sgd=0.1)
    bench.train(training)
    bench.set_gradients({name: w + 1 for name, w in weights.items()})
    call = "evaluate(model, batches) with dropout of 0.6"
    with nothing_left_behind(call):
        found = evaluated(bench, batches, call)
    check_float(found, mean_loss(weights, batches), f"{call}, of which nothing is dropped here")
    modes = ["evaluation", "training"]
    require(
        bench.modes() == [training] * len(bench.modes()),
        f"{call}\nThe model was in {modes[training]} mode, and not all of it is any more.",
    )
    check_named(bench.weights(), weights, call)
    check_named(bench.gradients(), {n: w + 1 for n, w in weights.items()}, call)


@pytest.mark.points(0.25)
def test_evaluate_records_no_gradients(problem, rng):
    """evaluate runs the model without recording gradients"""
    with torch.inference_mode():  # PyTorch refuses to store such weights for a backward pass
        bench = problem.Bench(random_weights(rng), sgd=0.1)
    call = "evaluate(model, batches)"
    try:
        bench.evaluate([random_batch(rng, 2, 5)])
    except RuntimeError as error:
        told = (
            "PyTorch stores what the model computes for a backward pass. How can you prevent that?"
        )
        require("saved for backward" not in str(error), f"{call}\n{told}")
        if "inference tensor" not in str(error):  # raised by requires_grad_(), too
            raise


# What holds for all


def three_calls(problem, rng, dtype=DOUBLE):
    """Calls of the first three functions: what was called, the arguments, and what is right."""
    q, k, v, grad = inputs(rng, 3, 4, 5, 2, 2, dtype=DOUBLE)
    mask = some_mask(rng, 3, 4)
    right = gradients_by_autograd(q, k, v, grad, mask)
    weights = by_rows(softmax_by_hand, rng.normal(2, 5, dtype=DOUBLE))
    slope = rng.normal(2, 5, dtype=DOUBLE)
    logits, targets = rng.normal(2, 3, 5, dtype=DOUBLE), torch.tensor([[1, -100, 0], [4, 2, 2]])
    leaf = logits.clone().requires_grad_()
    powers = leaf.exp()
    chosen = powers.gather(-1, targets.clamp(min=0)[..., None])[..., 0] / powers.sum(-1)
    loss = -torch.where(targets == -100, 0, chosen.log()).sum() / 5
    calls = {
        "softmax_backward(weights, grad)": (
            problem.softmax_backward,
            {"weights": weights, "grad": slope},
            [by_rows(softmax_backward_by_hand, weights, slope)],
        ),
        "attention_backward(q, k, v, grad, mask)": (
            problem.attention_backward,
            {"q": q, "k": k, "v": v, "grad": grad, "mask": mask},
            right,
        ),
        "cross_entropy_backward(logits, targets)": (
            problem.cross_entropy_backward,
            {"logits": logits, "targets": targets},
            torch.autograd.grad(loss, leaf),
        ),
    }
    for function, given, expected in calls.values():
        for name, tensor in given.items():
            given[name] = tensor.to(dtype) if tensor.is_floating_point() else tensor
        yield function, given, [each.to(dtype) for each in expected]


CALLS = (
    "softmax_backward(weights, grad)",
    "attention_backward(q, k, v, grad, mask)",
    "cross_entropy_backward(logits, targets)",
)


def check_results(found, expected, call, **near):
    """Compare what one of the first three returned: a tensor, or three."""
    found = [found] if len(expected) == 1 else three(found, call).values()
    for number, (each, right) in enumerate(zip(found, expected, strict=True)):
        what = f"{call}" if len(expected) == 1 else f"d{NAMES[number]} of {call}"
        check(each, right, what, **near)


@pytest.mark.points(0.5)
def test_dtype_is_kept(problem, rng):
    """float32 gives float32, float64 gives float64 with all its digits"""
    for dtype in (torch.float32, DOUBLE):
        for call, each in zip(CALLS, three_calls(problem, rng, dtype), strict=True):
            function, given, expected = each
            call = f"{call} in {str(dtype).removeprefix('torch.')}"
            check_results(returned(function, given, call), expected, call, all_digits=True)


@pytest.mark.points(0.5)
def test_arguments_are_left_alone(problem, rng):
    """Arguments are left as they are, transposed ones are fine, names work, nothing is drawn"""
    for call, each in zip(CALLS, three_calls(problem, rng), strict=True):
        function, given, expected = each
        with left_alone(call, **given), nothing_left_behind(call):
            check_results(function(**given), expected, call)
        call = f"{call} with transposed tensors"
        check_results(returned(function, given, call, turned), expected, call)


@pytest.mark.points(1.25)
@pytest.mark.inspection_only
def test_every_gradient_is_your_own(problem, rng):
    """The first three functions are written without backward, torch.autograd and torch.func"""
    for call, each in zip(CALLS, three_calls(problem, rng), strict=True):
        function, given, expected = each
        check_results(returned(function, given, call), expected, call)


# --- hidden tests ---


MORE_SHAPES = [(9,), (2, 8), (5, 1, 6), (3, 2, 2, 4), (4, 1), (70, 3)]


@pytest.mark.points(1)
@pytest.mark.parametrize("shape", MORE_SHAPES, ids=str)
def test_hidden_softmax_backward(problem, solution, rng, shape):
    """softmax_backward is right for other shapes, and where all weight is on one score"""
    for size, dtype in [(1, torch.float32), (3, DOUBLE), (1000, DOUBLE)]:
        weights = (size * rng.normal(*shape, dtype=DOUBLE)).softmax(-1).to(dtype)
        grad = 10 * rng.normal(*shape, dtype=dtype)
        call = f"softmax_backward(weights, grad) with scores of size {size}, shape {shape}"
        expected = solution.softmax_backward(weights, grad)
        check(problem.softmax_backward(turned(weights), grad.clone()), expected, call)


MORE_SIZES = [
    (1, 1, 3, 2),
    (1, 7, 3, 5),
    (6, 1, 2, 4),
    (2, 9, 1, 1, 3),
    (5, 4, 3, 7, 2, 1, 3),
    (24, 24, 6, 5),
    (2, 3, 70, 65),
]


@pytest.mark.points(1.75)
@pytest.mark.parametrize("sizes", MORE_SIZES, ids=str)
def test_hidden_attention_backward(problem, solution, rng, sizes):
    """attention_backward is right for other shapes: one key, one query, more leading dimensions"""
    for dtype in (torch.float32, DOUBLE):
        given = inputs(rng, *sizes, dtype=dtype)
        call = f"attention_backward(q, k, v, grad) with q {tuple(given[0].shape)}"
        call += f", k {tuple(given[1].shape)} and v {tuple(given[2].shape)}"
        check_attention(problem, given, solution.attention_backward(*given), call)


@pytest.mark.points(1.25)
@pytest.mark.parametrize("shape", [(6, 6), (1, 6), (6,), (6, 1), (3, 6, 6), (2, 1, 1, 6)], ids=str)
def test_hidden_masks(problem, solution, rng, shape):
    """attention_backward is right for other masks; where one key is left, scores get no gradient"""
    given = inputs(rng, 6, 6, 3, 5, 2, 3)
    alone = torch.zeros(shape, dtype=torch.bool)
    alone[..., -1] = True
    for mask in (some_mask(rng, *shape), alone, torch.ones(shape, dtype=torch.bool)):
        call = (
            f"attention_backward(q, k, v, grad, mask) with a mask {shape}, {int(mask.sum())} True"
        )
        expected = solution.attention_backward(*given, mask)
        check_attention(problem, [*given, mask], expected, call)


@pytest.mark.points(0.75)
def test_hidden_large_scores(problem, solution, rng):
    """Scores of thousands and more give no inf and no NaN, and hidden ones count for nothing"""
    q, k, v, grad = inputs(rng, 5, 6, 4, 3, 2)
    causal = torch.ones(5, 6, dtype=torch.bool).tril()
    for size in (1000.0, -1000.0, 1e5):
        large = [q * size * 2, k, v, grad]
        shifted = [torch.cat([q, q.new_full((2, 5, 1), size)], -1)]
        shifted += [torch.cat([k, k.new_full((2, 6, 1), 5.0)], -1), v, grad]
        for given, masks in itertools.product((large, shifted), ([], [causal])):
            call = (
                f"attention_backward(q, k, v, grad{', mask' if masks else ''}), scores near {size}"
            )
            expected = solution.attention_backward(*given, *masks)
            check_attention(problem, [*given, *masks], expected, call, rtol=1e-4, atol=1e-3)


@pytest.mark.points(0.5)
def test_hidden_digits(problem, rng):
    """float64 keeps all its digits, for other numbers and after calls in float32"""
    for dtype in (torch.float32, DOUBLE, DOUBLE):
        for call, each in zip(CALLS, three_calls(problem, rng, dtype), strict=True):
            function, given, expected = each
            call = f"{call} in {str(dtype).removeprefix('torch.')}"
            found = returned(function, given, call, turned)
            check_results(found, expected, call, all_digits=True)


@pytest.mark.points(1)
@pytest.mark.parametrize("shape", [(1, 4), (9, 2), (2, 3, 2, 5), (2, 70), (3, 1)], ids=str)
def test_hidden_cross_entropy_backward(problem, solution, rng, shape):
    """cross_entropy_backward is right for other shapes, logits near 1000, and with -100"""
    for shift in (0, 1000, -1000):
        logits = rng.normal(*shape, dtype=DOUBLE) + shift
        targets = torch.randint(shape[-1], shape[:-1], generator=rng.generator)
        some = targets.clone()
        some.view(-1)[1:] = torch.where(
            rng.normal(targets.numel() - 1) > 0, -100, some.view(-1)[1:]
        )
        for each in (targets, some):
            call = f"cross_entropy_backward(logits, targets) with logits near {shift}, {shape}"
            expected = solution.cross_entropy_backward(logits, each)
            given = {"logits": logits, "targets": each}
            found = returned(problem.cross_entropy_backward, given, call, turned)
            check(found, expected, call)


@pytest.mark.points(1)
def test_hidden_clip(problem, rng):
    """clip_gradients is right for many parameters, large and small gradients, and any limit"""
    for number, (size, part) in enumerate(
        [(0.02, 0.5), (100, 0.01), (1, 1.01), (1e-4, 3), (5, 0.99)]
    ):
        shapes = [(3,), (2, 4), (1,), (2, 1, 3), (5,)][: 1 + number]
        gradients = {f"w{n}": size * rng.normal(*shape) for n, shape in enumerate(shapes)}
        norm = norm_of(gradients)
        call = f"clip_gradients(parameters, {part * norm:.4g}) with gradients of norm {norm:.4g}"
        bench = clipped(problem, gradients, part * norm, call)
        found, factor = bench.gradients(), min(1, part)
        near = {"rtol": 1e-4, "atol": 1e-5 * size}
        check_named(found, {name: g * factor for name, g in gradients.items()}, call, **near)


@pytest.mark.points(0.75)
def test_hidden_learning_rate(problem, rng):
    """learning_rate is right for other plans: a warmup of one step, a floor above 0, long ones"""
    plans = [(1, 30, 0.5, 0.2), (7, 8, 3e-4, 3e-5), (0, 1, 0.01, 0.001), (300, 5000, 6e-3, 6e-4)]
    for warmup, total, peak, floor in plans:
        middle = (warmup + total) // 2
        steps = {0, 1, warmup // 2, warmup - 1, warmup, middle, middle + 1, total - 1, total}
        for step in sorted(steps | {total + 1, 3 * total}):
            if step >= 0:
                call = f"learning_rate({step}, {warmup}, {total}, {peak}, {floor})"
                found = problem.learning_rate(step, warmup, total, peak, floor)
                expected = learning_rate_by_hand(step, warmup, total, peak, floor)
                near = 1e-5 * peak
                check_number(found, expected - near, expected + near, call, f"{expected:.7g}")


OTHER_OPTIONS = [
    {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-2, "weight_decay": 0.0},
    {"lr": 0.2, "betas": (0.0, 0.9), "eps": 1e-8, "weight_decay": 0.3},
    {"lr": 0.03, "betas": (0.5, 0.0), "eps": 1e-6, "weight_decay": 1.0},
]


@pytest.mark.points(1.25)
@pytest.mark.parametrize("options", OTHER_OPTIONS, ids=told)
def test_hidden_adamw(problem, rng, options):
    """AdamW is right with other options, and for gradients whose size changes"""
    weights = {"a": rng.normal(2, 2, dtype=DOUBLE), "b": rng.normal(3, dtype=DOUBLE)}
    # Where no square is kept, `v += (1 - beta2) * (g**2 - v)` loses digits when gradients shrink:
    # there none is near 0.
    keeps_squares = options["betas"][1] > 0
    sizes = (1, 1e-3, 30, 1e-6, 1, 1) if keeps_squares else (1, 0.3, 2, 0.5, 1, 1)
    gradients = []
    for size in sizes:
        drawn = {name: rng.normal(*w.shape, dtype=DOUBLE) for name, w in weights.items()}
        far = {name: size * (d if keeps_squares else d + d.sign()) for name, d in drawn.items()}
        gradients.append(far)
    check_adamw(problem, weights, gradients, f"AdamW(parameters, {told(options)})", **options)


@pytest.mark.points(1)
def test_hidden_parameters_without_gradients(problem, rng):
    """Parameters with a gradient in some steps only, or one of zeros, are right after each step"""
    weights = {name: rng.normal(3, dtype=DOUBLE) for name in "abcd"}
    given = [{name: rng.normal(3, dtype=DOUBLE) for name in names} for names in ("ab", "a", "abc")]
    given += [{}, {name: rng.normal(3, dtype=DOUBLE) for name in "bc"}]
    given += [dict.fromkeys("ad", torch.zeros(3, dtype=DOUBLE))]  # d begins with it
    call = f"AdamW(parameters, {told(ADAMW)}), where some parameters have no gradient"
    check_adamw(problem, weights, given, call, **ADAMW)


@pytest.mark.points(0.5)
def test_hidden_two_models_in_turns(problem, rng):
    """Two models that are trained in turns don't touch each other"""
    weights = [{"a": rng.normal(3, dtype=DOUBLE)} for _ in range(2)]
    rates = [0.1, 0.02]
    benches = [
        problem.Bench(each, lr=lr, weight_decay=0.1)
        for each, lr in zip(weights, rates, strict=True)
    ]
    given = [[], []]
    call = (
        "AdamW(parameters, weight_decay=0.1).step() of one of two models that are trained in turns"
    )
    for number in (0, 1, 0, 0, 1):
        given[number].append(rng.normal(3, dtype=DOUBLE))
        benches[number].set_gradients({"a": given[number][-1]})
        benches[number].optimizer.step()
        for bench, before, gradients, lr in zip(benches, weights, given, rates, strict=True):
            right = adamw_of_tensor(before["a"], gradients, lr=lr, weight_decay=0.1)
            check(bench.weights()["a"], right, f"`a` after {call}", **TWELVE_DIGITS)


@pytest.mark.points(0.75)
def test_hidden_state_after_the_rate_was_changed(problem, rng):
    """What is kept of earlier gradients outlives a new learning rate, and zero_grad"""
    weights = {"a": rng.normal(2, 3, dtype=DOUBLE)}
    rates, gradients = [0.1, 0.1, 0.001, 0.05], []
    bench = problem.Bench(weights, lr=0.1, weight_decay=0.05)
    for number, lr in enumerate(rates):
        gradients.append(rng.normal(2, 3, dtype=DOUBLE))
        bench.set_lr(lr)
        bench.optimizer.zero_grad()
        bench.set_gradients({"a": gradients[-1]})
        bench.optimizer.step()
        expected = adamw_of_tensor(
            weights["a"], gradients, lr=rates[: number + 1], weight_decay=0.05
        )
        call = f"step {number + 1} with a learning rate of {lr}, and zero_grad before each"
        check(bench.weights()["a"], expected, f"`a` after {call}", **TWELVE_DIGITS)


@pytest.mark.points(0.75)
def test_hidden_steps_with_adamw(problem, rng):
    """Steps of training with AdamW are those of its definition, with gradients that begin anew"""
    weights, sofar = random_weights(rng, dtype=DOUBLE), []
    options = {"lr": 0.02, "weight_decay": 0.1, "betas": (0.9, 0.95)}
    bench, now = problem.Bench(weights, **options), weights
    for number in range(4):
        idx, targets = random_batch(rng, 2 + number, 4)
        loss = bench.train_step(idx, targets, max_norm=1000.0)
        call = f"train_step number {number + 1} with AdamW(parameters, {told(options)})"
        check_float(loss, float(loss_of(now, idx, targets)), call)
        sofar.append(gradients_of(now, idx, targets))
        now = {n: adamw_of_tensor(w, [g[n] for g in sofar], **options) for n, w in weights.items()}
        check_named(bench.weights(), now, call, rtol=1e-5, atol=1e-5)


@pytest.mark.points(0.75)
def test_hidden_train_step(problem, rng):
    """train_step is right for other models and batches, with norms above the limit and below"""
    for number, dtype in enumerate((torch.float32, DOUBLE, torch.float32)):
        weights = random_weights(rng, 11, 9, 5, dtype=dtype)
        weights["lm_head.bias"][0] += 20 * number  # the losses of all but one model are large
        idx, targets = random_batch(rng, 1 + number, 9 - number, 11)
        norm = norm_of(gradients_of(weights, idx, targets))
        for part in (0.02, 0.3, 0.999, 1.2):
            bench = problem.Bench(weights, sgd=0.2)
            call = "train_step(model, idx, targets, optimizer, max_norm) with gradients whose norm "
            call += f"is {1 / part:.1f} times max_norm"
            loss = bench.train_step(idx, targets, max_norm=part * norm)
            check_float(loss, float(loss_of(weights, idx, targets)), call)
            expected = after_sgd(weights, idx, targets, 0.2, part * norm)
            check_named(bench.weights(), expected, call)


@pytest.mark.points(0.25)
def test_hidden_dropout_in_training(problem, rng):
    """A model that drops activations in training does so in train_step, and goes on doing so"""
    weights, batch = random_weights(rng, n_embd=16), random_batch(rng, 3, 6)
    call = "train_step(model, idx, targets, optimizer) with dropout of 0.5"
    losses = []
    for seed in (1, 2, 1):
        bench = problem.Bench(weights, dropout=0.5, sgd=0.1)
        torch.default_generator.manual_seed(seed)
        losses.append(bench.train_step(*batch))
        require(all(bench.modes()), f"{call}\nThe model isn't in training mode any more.")
    require(losses[0] == losses[2], f"{call}\nAfter the same seed it gave different losses.")
    differ = losses[0] != losses[1]
    told = "With another seed the loss is the same: nothing is dropped, or your code sets a seed."
    require(differ, f"{call}\n{told}")


@pytest.mark.points(0.75)
def test_hidden_evaluate(problem, rng):
    """evaluate is right for many batches, in both modes, and after steps of training"""
    weights = random_weights(rng, dtype=DOUBLE)
    bench = problem.Bench(weights, dropout=0.3, sgd=0.1)
    batches = [random_batch(rng, *size) for size in [(1, 1), (4, 6), (2, 3), (1, 6), (5, 2)]]
    batches[1] = (batches[1][0], worst_targets(weights, batches[1][0]))
    for mode in (True, False, True):
        bench.train(mode)
        call = f"evaluate(model, batches) in {'training' if mode else 'evaluation'} mode"
        found = evaluated(bench, batches, call)
        check_float(found, mean_loss(weights, batches), call, share=1e-6)
        require(set(bench.modes()) == {mode}, f"{call}\nIt left the model in the other mode.")
        bench.train_step(*batches[2])
        weights = bench.weights()
        call = f"{call}, after a step of training"
        found = evaluated(bench, batches[1:], call)
        check_float(found, mean_loss(weights, batches[1:]), call, share=1e-6)
