"""Tests of problem 04. Run them with `uv run pytest` in this folder."""

import inspect
import math
from functools import partial

import pytest
import torch

from grader.code.tensors import parameters
from grader.run import checks
from grader.run.calls import answers
from shared import robust
from shared import worked_example as example
from shared.oracles import causal_masking as oracles

# causal_mask


@pytest.mark.points(1.25)
def test_causal_mask_in_numbers(problem):
    """causal_mask(4) is True on the diagonal and below it, and False above it"""
    expected = oracles.causal_mask(4)
    checks.check_that(problem.causal_mask(4), oracles.is_mask, "causal_mask(4)", expected)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("seq_len", [1, 2, 3, 7, 10])
def test_causal_mask_of_any_size(problem, seq_len):
    """causal_mask is a bool matrix in which position i may attend to position j when j <= i"""
    actual = problem.causal_mask(seq_len=seq_len)
    checks.check(actual, oracles.causal_mask(seq_len), f"causal_mask(seq_len={seq_len})")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")], ids=["name", "torch.device"])
def test_causal_mask_takes_a_device(problem, device):
    """causal_mask takes a device, by its name or as a torch.device"""
    call, expected = f"causal_mask(3, device={device!r})", oracles.causal_mask(3)
    checks.check_that(problem.causal_mask(3, device), oracles.is_mask, call, expected)
    try:
        problem.causal_mask(3, device="nowhere")
    except RuntimeError:
        return  # PyTorch looked for it
    message = "There is no such device, and a mask came back: `device` isn't used."
    checks.require(False, f'causal_mask(3, device="nowhere")\n{message}')


# masked_softmax


def triangle(size):
    """A mask to give to code: True on the diagonal and below."""
    return torch.ones(size, size, dtype=torch.bool).tril()


def random_mask(rng, *shape):
    """A mask of the given shape, with at least one True in every row."""
    mask = rng.normal(*shape) > 0
    mask[..., 0] |= ~mask.any(-1)
    return mask


def with_a_zero(scores, mask):
    """These scores, of which the last row is moved so that its first allowed one is 0."""
    rows = scores.clone().flatten(0, -2)
    first = mask.expand(scores.shape).flatten(0, -2)[-1].int().argmax()
    rows[-1] -= rows[-1, first].item()
    return rows.view(scores.shape)


def check_masked_softmax(problem, scores, mask, what, **near):
    """Compare weights with the definition, and see that the masked ones are exactly 0."""
    # Copies: what becomes of the arguments is judged by another test.
    actual = problem.masked_softmax(scores.clone(), mask.clone())
    expected = oracles.masked_softmax(scores, mask)
    call = f"masked_softmax(scores, mask) with {what}"
    checks.check_that(actual, oracles.are_weights, call, expected, mask, near)


@pytest.mark.points(0.5)
def test_masked_softmax_in_numbers(problem):
    """masked_softmax gives the weights of the worked example"""
    actual = problem.masked_softmax(scores=example.Q @ example.K.T / math.sqrt(8), mask=triangle(4))
    call = "masked_softmax(scaled scores of the worked example, causal mask)"
    checks.check_that(actual, oracles.are_weights, call, oracles.WEIGHTS, triangle(4), {})


@pytest.mark.points(0.75)
@pytest.mark.parametrize("case", ["equal scores", "one place left", "long rows"])
def test_masked_softmax_of_special_rows(problem, rng, case):
    """masked_softmax is right for scores of 0, a single allowed one, and hundreds of them"""
    scores, mask = {
        "equal scores": (torch.zeros(3, 3), triangle(3)),
        "one place left": (rng.normal(2, 3, 4), torch.eye(4)[[2, 0, 3]].bool()),
        "long rows": (rng.normal(2, 500), torch.arange(500) < torch.tensor([[500], [300]])),
    }[case]
    check_masked_softmax(problem, with_a_zero(scores, mask), mask, case)


MASKS = [
    ((4, 6), (4, 6)),
    ((3, 4, 6), (4, 6)),
    ((3, 2, 4, 5), (3, 1, 1, 5)),
    ((2, 3, 4, 6), (6,)),
    ((1, 3, 1, 5), (1, 5)),
]
"""Shapes of scores and of their masks."""


@pytest.mark.points(1)
@pytest.mark.parametrize(("shape", "mask_shape"), MASKS, ids=str)
def test_masked_softmax_with_any_mask(problem, rng, shape, mask_shape):
    """masked_softmax gives the softmax of each row's allowed scores, for any mask"""
    mask = random_mask(rng, *mask_shape)
    scores = with_a_zero(rng.normal(*shape) * 2, mask)
    check_masked_softmax(problem, scores, mask, f"scores {shape} and mask {mask_shape}")


# Scores that large overflow as soon as one takes exp of them, and lie beyond -1e9 or -1e30. From
# the lowest score to the highest is farther than from the dtype's lowest number to 0, so even that
# number hides nothing when it is added.
HUGE = {torch.float32: 6e37, torch.float64: 4e307}
BOTH_DTYPES = pytest.mark.parametrize("dtype", list(HUGE), ids=["float32", "float64"])


def huge_scores(dtype):
    """Scores and a mask whose rows are each hard in another way."""
    huge = HUGE[dtype]
    rows = {  # the scores, and which of them are allowed
        (0.0, huge, -0.5, -huge): "1010",  # huge masked ones beside small allowed ones
        (-huge, 0.2, -2 * huge, 0.5): "1010",  # allowed ones far below the masked ones
        (huge, -huge, -2 * huge, -3 * huge): "0101",  # both at once
        (100.0, -100.5, -101.0, 100.25): "0110",  # exp of the allowed ones is almost 0
        (1000.0, 1001.0, 999.5, -huge): "1110",  # exp of the allowed ones overflows
        (-huge, -1000.0, 2 * huge, huge): "0100",  # a single allowed one
        (huge, -4 * huge, 0.5, -3.5 * huge): "0101",  # allowed ones near the lowest number
    }
    mask = torch.tensor([[mark == "1" for mark in marks] for marks in rows.values()])
    return torch.tensor([*rows], dtype=dtype), mask


def wide(dtype):
    """How near answers must be for large scores, whose own last digits are coarse in float32."""
    return {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {}


@pytest.mark.points(0.5)
@BOTH_DTYPES
def test_masked_softmax_of_huge_scores(problem, dtype):
    """masked_softmax stays right when masked or allowed scores are huge or far below zero"""
    scores, mask = huge_scores(dtype)
    what = f"masked and allowed scores up to {4 * HUGE[dtype]:g}"
    check_masked_softmax(problem, scores, mask, what, **wide(dtype))


@pytest.mark.points(0.5)
@pytest.mark.parametrize("size", ["ordinary", "huge"])
def test_masked_softmax_gradients(problem, rng, size):
    """Gradients of masked_softmax are right, finite, and 0 for masked scores"""
    if size == "huge":
        scores, mask = huge_scores(torch.float32)
    else:
        mask = triangle(6)[:, :4]
        scores = with_a_zero(rng.normal(2, 6, 4), mask)
    upstream = rng.normal(*scores.shape)
    call = f"masked_softmax(scores, mask) of {size} scores"
    scores.requires_grad_()
    weights = problem.masked_softmax(scores.clone(), mask.clone())
    found = checks.gradients(weights, {"scores": scores}, upstream, call)
    expected = oracles.masked_softmax_gradient(scores, mask, upstream)
    checks.check_gradients(found, expected, call, **wide(scores.dtype))


def masked_softmax_call(problem, rng, lead=(), n=4, m=5, dtype=torch.float32):
    """A call of masked_softmax."""
    scores, mask = rng.normal(*lead, n, m, dtype=dtype), random_mask(rng, n, m)
    scores[..., 0, 0] += 15  # next to these the others weigh less than a millionth
    return robust.Call(
        "masked_softmax(scores, mask)",
        problem.masked_softmax,
        {"scores": with_a_zero(scores, mask), "mask": mask},
        oracles.masked_softmax,
        # Nearer than usual: a small number added to the denominator would show.
        near={"rtol": 1e-12, "atol": 1e-13} if dtype == torch.float64 else {},
    )


@pytest.mark.points(1)
@robust.parts("float16", "bfloat16", "float32", "float64", "sizes of one", *robust.KEPT)
def test_masked_softmax_in_use(problem, rng, part):
    """masked_softmax keeps the rules that hold in every problem"""
    make = partial(masked_softmax_call, problem, rng)
    robust.check_part(part, rng, make, sizes="lead n m")


# CausalAttention

# How near a gradient must be in float32, where it is a sum of many terms that are all rounded.
SUMMED = {"rtol": 1e-3, "atol": 3e-4}


def make_attention(problem, weights, n_positions):
    """The student's CausalAttention in the dtype of these weights, holding them."""
    n_embd, bias = len(weights["query.weight"]), "query.bias" in weights
    return example.holding(problem.CausalAttention(n_embd, n_positions, bias), weights)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_layers(problem, bias):
    """CausalAttention has query, key and value alone, random at first, and biases unless False"""
    make = partial(problem.CausalAttention, n_embd=6, n_positions=4, bias=bias)
    example.check_layers(make(), 6, bias)
    example.check_random_start(make, example.LAYERS, f"CausalAttention(6, 4, bias={bias})")


@pytest.mark.points(0.25)
def test_defaults(problem):
    """CausalAttention() is 768 wide and has 1024 positions and biases"""
    example.check_layers(problem.CausalAttention(n_positions=3), 768)
    # To make so large a mask in Python loops would take many seconds.
    stated = inspect.signature(problem.CausalAttention).parameters.get("n_positions")
    found = stated and stated.default
    checks.check_that(found, oracles.default_positions, "CausalAttention(n_embd=2)")


def check_mask(layer, n_positions, call):
    """See that the layer has a buffer `mask` and that it is the causal mask, in any number type."""
    buffers = dict(layer.named_buffers())
    checks.require("mask" in buffers, f"There is no buffer `mask`. The buffers are: {[*buffers]}.")
    expected = oracles.causal_mask(n_positions).double()
    checks.check(buffers["mask"].double(), expected, f"{call}, as numbers 0 and 1")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("n_positions", [5, 8, 1])
def test_mask_is_a_buffer(problem, n_positions):
    """CausalAttention holds the causal mask of all its positions as a buffer that isn't trained"""
    layer = problem.CausalAttention(3, n_positions)
    learns = "mask" in parameters(layer) or getattr(layer.mask, "requires_grad", False)
    checks.require(not learns, "`mask` would be trained; it should be a buffer.")
    check_mask(layer, n_positions, f"the buffer mask of CausalAttention(3, {n_positions})")


@pytest.mark.points(1.5)
def test_attention_in_numbers(problem):
    """CausalAttention gives the output of the worked example"""
    # Token i is 1 at place i and 0 elsewhere, so column i of each matrix is what it turns into.
    tokens = torch.eye(4, 8)[None]
    tables = zip(example.LAYERS, (example.Q, example.K, example.V), strict=True)
    weights = {f"{name}.weight": torch.cat([rows.T, 0 * rows.T], 1) for name, rows in tables}
    weights |= {f"{name}.bias": torch.zeros(8) for name in example.LAYERS}
    actual = make_attention(problem, weights, n_positions=6)(tokens)
    checks.check(actual, oracles.OUTPUT[None], "CausalAttention on the worked example")


@pytest.mark.points(1.75)
@pytest.mark.parametrize(
    ("shape", "n_positions", "bias"),
    [
        ((2, 5, 6), 9, True),
        ((4, 3, 10), 5, True),
        ((1, 4, 3), 7, False),
        ((3, 1, 5), 2, True),
        ((1, 6, 2), 8, True),
    ],
    ids=str,
)
def test_attention(problem, rng, shape, n_positions, bias):
    """For each position CausalAttention averages the values up to it, by scaled scores"""
    x, weights = rng.normal(*shape), example.random_weights(rng, shape[-1], bias=bias)
    layer = make_attention(problem, weights, n_positions).train(bias)
    mode = "" if bias else ", in evaluation"
    call = f"CausalAttention({shape[-1]}, {n_positions}, bias={bias}) on x of shape {shape}{mode}"
    expected = oracles.output(x, weights)
    checks.check(layer(x.clone()), expected, call, sizes={"n_embd": shape[-1]})


@pytest.mark.points(1)
@pytest.mark.parametrize("what", ["outputs", "gradients"])
@pytest.mark.parametrize("size", [1, 1e15], ids=str)
def test_no_look_ahead(problem, rng, size, what):
    """Tokens of any size that come later change neither earlier outputs nor their gradients"""
    weights = example.random_weights(rng, 3)
    layer = make_attention(problem, weights, n_positions=7)
    for seen in (1, 2, 4):
        call = f"CausalAttention(3, 7): the first {seen} tokens, with tokens near {size:g} later"
        now, later = rng.normal(2, seen, 3), rng.normal(2, 5 - seen, 3) * size
        x = torch.cat([now, later], dim=1).requires_grad_()
        actual = layer.train(seen < 3)(x.clone())
        if what == "outputs":
            first = checks.check_form(actual, x, call)[:, :seen]
            checks.check(first, oracles.output(now, weights), call)
            continue
        upstream = torch.cat([rng.normal(2, seen, 3), torch.zeros_like(later)], dim=1)
        inputs = {"x": x} | example.trained(layer, weights)
        found = checks.gradients(actual, inputs, upstream, call)
        checks.check_gradients(found, oracles.slopes(x, weights, upstream), call, **SUMMED)


@pytest.mark.points(0.25)
def test_attention_of_equal_scores(problem, rng):
    """CausalAttention gives the mean of the values so far where all scores are 0"""
    x, weights = rng.normal(2, 4, 3), example.random_weights(rng, 3)
    weights["query.weight"], weights["query.bias"] = torch.zeros(3, 3), torch.zeros(3)
    actual = make_attention(problem, weights, n_positions=5)(x.clone())
    call = "CausalAttention(3, 5) whose queries are all 0, so each output is the mean of its values"
    checks.check(actual, oracles.output(x, weights), call)


@pytest.mark.points(0.5)
def test_weights_of_the_last_token(problem, rng):
    """In CausalAttention the last token's weights are the softmax of its scaled scores"""
    # No two of these sizes, their halves, their squares and their roots are alike. Each token is
    # its own value and has a place of its own, so an output shows its weights.
    x = torch.eye(7, 11).repeat(3, 1, 1)
    weights = example.random_weights(rng, 11)
    weights |= {"value.weight": torch.eye(11), "value.bias": torch.zeros(11)}
    actual = make_attention(problem, weights, n_positions=13)(x.clone())
    call = "CausalAttention(11, 13) on x of shape (3, 7, 11): the weights of the last token"
    checks.check(actual[:, -1], oracles.output(x, weights)[:, -1], call, sizes={"d_k": 11})


@pytest.mark.points(0.5)
@pytest.mark.parametrize("batch", [1, 8])
def test_longest_sequence(problem, rng, batch):
    """A sequence of n_positions tokens is fine, and a longer one raises ValueError"""
    weights = example.random_weights(rng, 3)
    x, layer = rng.normal(batch, 4, 3), make_attention(problem, weights, n_positions=4)
    call = "CausalAttention(3, 4) on a sequence of 4"
    checks.check(layer(x.clone()), oracles.output(x, weights), call)
    # A mask for one position fits any sequence, as it would be repeated.
    for n_positions, length in [(4, 5), (4, 9), (1, 2), (1, 4)]:
        layer = make_attention(problem, weights, n_positions)
        call = f"CausalAttention(3, n_positions={n_positions}) on a sequence of {length}"
        x = rng.normal(batch, length, 3)
        example.check_refused(call, partial(layer, x))
        with torch.no_grad():
            example.check_refused(f"{call} in evaluation", partial(layer.eval(), x))


@pytest.mark.points(0.25)
def test_attention_of_large_tokens(problem, rng):
    """CausalAttention stays right for tokens of any size"""
    x, weights = rng.normal(2, 4, 3), example.random_weights(rng, 3)
    # The score of two tokens is the product of their first entries, times -1: far below 0 for the
    # first token and itself, and never so near another score that rounding decides.
    x[..., 0] = torch.tensor([-2.0, 3.0, 1.0, -1.0])
    first = torch.tensor([1.0, 0.0, 0.0]).diag()
    weights |= {"query.weight": first, "key.weight": -first}
    x *= 1e12
    actual = make_attention(problem, weights, n_positions=6)(x.clone())
    call = "CausalAttention(3, 6) on tokens around 1e12"
    checks.check(actual, oracles.output(x, weights), call, atol=1e8)


def attention_call(problem, rng, batch=2, length=4, n_embd=3, dtype=torch.float32):
    """A call of a CausalAttention."""
    weights = example.random_weights(rng, n_embd, dtype=dtype)
    x = rng.normal(batch, length, n_embd, dtype=dtype)
    return robust.Call(
        f"CausalAttention({n_embd}, 6)(x)",
        make_attention(problem, weights, n_positions=6),
        {"x": x},
        lambda x: oracles.output(x.double(), weights).to(dtype),
        weights=weights,
        slopes=partial(oracles.slopes, x, weights),
        # Half of bfloat16's digits are lost on the way through five products.
        near={"rtol": 0.2, "atol": 0.2} if dtype == torch.bfloat16 else {},
    )


@pytest.mark.points(1.25)
@robust.parts("bfloat16", *robust.COMMON)
def test_attention_in_use(problem, rng, part):
    """CausalAttention keeps the rules that hold in every problem"""
    make = partial(attention_call, problem, rng)
    robust.check_part(part, rng, make, sizes="batch length n_embd", other={"length": 5})


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_attention_is_your_own(problem, rng):
    """CausalAttention is written without PyTorch's own attention"""
    x = rng.normal(2, 3, 6)
    checks.check_form(problem.CausalAttention(6, 4)(x.clone()), x, "CausalAttention(6, 4)(x)")


# --- hidden tests ---

from shared import three_layers  # noqa: E402
from shared.oracles import modules  # noqa: E402


def cases(rng):
    """Scores and masks of other sizes, with masks that broadcast in other ways."""
    shapes = [
        ((3, 8), (8,)),
        ((6, 5), (1, 5)),
        ((5, 1, 4), (5, 1, 4)),
        ((4, 5, 7), (4, 1, 7)),
        ((4, 2, 6, 6), (2, 6, 6)),
        ((3, 4, 8, 5), (1, 1, 8, 5)),
        ((2, 1, 3, 4, 6), (1, 3, 4, 6)),
        ((2, 3, 1, 1), (2, 3, 1, 1)),
        ((2, 1100), (2, 1100)),
        ((300, 1, 2), (300, 1, 2)),
    ]
    for shape, mask_shape in shapes:
        mask = random_mask(rng, *mask_shape)
        scores = with_a_zero(rng.normal(*shape) * 2 + rng.normal(*shape[:-1], 1) * 60, mask)
        yield f"scores {shape} and mask {mask_shape}", scores, mask
    square, swapped = rng.normal(2, 5, 5), rng.normal(3, 2, 4, 5).transpose(0, 1)
    yield "the diagonal", square, torch.eye(5, dtype=torch.bool)
    yield "an upper triangle", square, triangle(5).T
    yield (
        "scores and a mask in another order in memory",
        swapped,
        example.turned(random_mask(rng, 4, 5)),
    )
    expanded = random_mask(rng, 4, 5).expand(2, 3, 4, 5)
    yield "a mask that was expanded", example.turned(swapped), expanded


def both(solution, problem, weights, n_positions):
    """The reference's CausalAttention and the student's, holding these weights."""
    sizes = (len(weights["query.weight"]), n_positions, "query.bias" in weights)
    right = modules.made(weights, solution.CausalAttention, *sizes)
    return right, make_attention(problem, weights, n_positions)


def check_causal_mask(problem, solution, seq_len):
    """Compare two masks of this size with the reference's."""
    for actual in answers(problem.causal_mask, [{"seq_len": seq_len}] * 2):
        expected = solution.causal_mask(seq_len)
        checks.check_that(actual, oracles.is_mask, f"causal_mask({seq_len})", expected)


@pytest.mark.points(1.25)
@pytest.mark.parametrize("seq_len", [1, 4, 5, 6, 8, 13, 17, 130, 1030])
def test_hidden_causal_mask(problem, solution, seq_len):
    """causal_mask is right for other sizes"""
    check_causal_mask(problem, solution, min(seq_len, 300))
    if seq_len > 300:
        with checks.may_be_skipped(f"causal_mask({seq_len})") as skip:
            if not (example.loops_over_pairs(problem.causal_mask) and skip()):
                check_causal_mask(problem, solution, seq_len)


@pytest.mark.points(1)
def test_hidden_masked_softmax(problem, solution, rng):
    """masked_softmax is right for other sizes and masks, and so are its gradients"""
    calls = [
        (f"masked_softmax(scores, mask) with {what}", {"scores": scores.detach(), "mask": mask})
        for what, scores, mask in cases(rng)
    ]
    for _, arguments in calls:
        arguments["scores"].requires_grad_()
    near = wide(torch.float32)
    example.check_like(solution.masked_softmax, problem.masked_softmax, rng, calls, **near)


SIZES = [
    ((3, 7, 4), 11, True),
    ((2, 4, 9), 4, True),
    ((5, 1, 7), 3, False),
    ((2, 6, 1), 10, True),
    ((6, 2, 12), 13, True),
    ((2, 12, 8), 16, True),
    ((1, 130, 2), 135, True),
    ((1, 3, 3), 300, True),
    ((300, 2, 3), 4, False),
    ((1, 2, 130), 5, True),
]
SIZE_NAMES = ("shape", "n_positions", "bias")


@pytest.mark.points(4)
@pytest.mark.parametrize(SIZE_NAMES, SIZES, ids=str)
def test_hidden_attention(problem, solution, rng, shape, n_positions, bias):
    """CausalAttention is right for other sizes, in training and in evaluation"""
    weights, x = example.random_weights(rng, shape[-1], bias=bias), rng.normal(*shape)
    right, module = both(solution, problem, weights, n_positions)
    call = f"CausalAttention({shape[-1]}, {n_positions}, bias={bias}) on x of shape {shape}"
    checks.check(module.train(bias)(x.clone()), right(x), call, sizes={"n_embd": shape[-1]})


@pytest.mark.points(1.5)
@pytest.mark.parametrize(SIZE_NAMES, SIZES[::2], ids=str)
def test_hidden_attention_gradients(problem, solution, rng, shape, n_positions, bias):
    """Gradients of CausalAttention are right for other sizes"""
    weights = example.random_weights(rng, shape[-1], bias=bias)
    case = (
        f"CausalAttention({shape[-1]}, {n_positions}, bias={bias}) on x of shape {shape}",
        {"x": rng.normal(*shape).requires_grad_()},
    )
    pair = both(solution, problem, weights, n_positions)
    example.check_like(*pair, rng, [case], **SUMMED)


@pytest.mark.points(0.25)
def test_hidden_long_sequence(problem, solution, rng):
    """CausalAttention takes a sequence of 400 tokens, and the last one looks at all of them"""
    right, module = both(solution, problem, example.random_weights(rng, 2), 400)
    call = "CausalAttention(2, 400)(x) with x of shape (1, 400, 2)"
    three_layers.check_long_sequence(right, module, rng.normal(1, 400, 2), call)


@pytest.mark.points(0.5)
def test_hidden_numbers_of_any_size(problem, solution, rng):
    """CausalAttention and its gradients are right for tokens, keys, values, scores of any size"""
    # In float64: of numbers near a million float32 leaves too few digits.
    tokens = rng.normal(2, 4, 6, dtype=torch.float64)
    for what, x, weights in example.of_any_size(
        tokens, example.random_weights(rng, 6, dtype=torch.float64)
    ):
        case = (f"CausalAttention(6, 5)(x) with {what}", {"x": x.requires_grad_()})
        pair = both(solution, problem, weights, 5)
        example.check_like(*pair, rng, [case], rtol=1e-6, atol=1e-4)


@pytest.mark.points(0.75)
def test_hidden_digits(problem, solution, rng):
    """In float64 all digits are right, of weights, of outputs and of all their gradients"""
    # The larger ones make weights of less than a millionth.
    sizes = torch.tensor([1.0, 4, 16])[:, None, None]
    scores, x = (
        (rng.normal(3, 4, 5, dtype=torch.float64) * sizes).requires_grad_() for _ in range(2)
    )
    weights, mask = example.random_weights(rng, 5, dtype=torch.float64), random_mask(rng, 4, 5)
    case = ("masked_softmax(scores, mask) in float64", {"scores": scores, "mask": mask})
    example.check_like(
        solution.masked_softmax, problem.masked_softmax, rng, [case], all_digits=True
    )
    pair = both(solution, problem, weights, 6)
    example.check_like(
        *pair, rng, [("CausalAttention(5, 6)(x) in float64", {"x": x})], all_digits=True
    )


@pytest.mark.points(0.25)
def test_hidden_second_call(problem, solution, rng):
    """Sequences of any length may follow each other, even after one that raised ValueError"""
    mine, theirs = both(solution, problem, example.random_weights(rng, 4), 5)
    results = []
    for shape in [(2, 5, 4), (3, 2, 4), (2, 6, 4), (1, 4, 4), (2, 1, 4), (2, 5, 4), (1, 3, 4)]:
        x = rng.normal(*shape)
        call = f"CausalAttention(4, 5) on x of shape {shape}, after other calls"
        if shape[1] > 5:
            example.check_refused(call, lambda x=x: theirs(x))
        else:
            results.append((theirs(x.clone()), mine(x), call))
    for actual, expected, call in results:
        checks.check(actual, expected, call)
    check_mask(theirs, 5, "the buffer mask of CausalAttention(4, 5), after some calls")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("call", [masked_softmax_call, attention_call], ids=["function", "module"])
@robust.parts("nothing changed", "second call")
def test_hidden_in_use(problem, rng, call, part):
    """masked_softmax and CausalAttention change nothing and remember nothing, in other sizes too"""
    sizes = {"length": 5, "n_embd": 5} if call is attention_call else {"lead": (2, 1), "n": 3}
    robust.check_part(part, rng, partial(call, problem, rng, **sizes))
