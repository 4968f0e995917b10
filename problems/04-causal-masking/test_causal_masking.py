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
    """causal_mask returns bools: entry (i, j) is True where j <= i"""
    actual = problem.causal_mask(seq_len=seq_len)
    checks.check(actual, oracles.causal_mask(seq_len), f"causal_mask(seq_len={seq_len})")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")], ids=["name", "torch.device"])
def test_causal_mask_takes_a_device(problem, device):
    """causal_mask accepts a device, as a name or as a torch.device"""
    call, expected = f"causal_mask(3, device={device!r})", oracles.causal_mask(3)
    checks.check_that(problem.causal_mask(3, device), oracles.is_mask, call, expected)
    try:
        problem.causal_mask(3, device="nowhere")
    except RuntimeError:
        return
    message = "There is no such device, but it returned a mask: `device` is not used."
    checks.require(False, f'causal_mask(3, device="nowhere")\n{message}')


# masked_softmax


def triangle(size):
    """Return a causal mask, as an argument of the student's code."""
    return torch.ones(size, size, dtype=torch.bool).tril()


def random_mask(rng, *shape):
    """Return a random mask with at least one True in every row."""
    mask = rng.normal(*shape) > 0
    mask[..., 0] |= ~mask.any(-1)
    return mask


def with_a_zero(scores, mask):
    """Return the scores with a shifted last row, so that its first allowed score is 0."""
    rows = scores.clone().flatten(0, -2)
    first = mask.expand(scores.shape).flatten(0, -2)[-1].int().argmax()
    rows[-1] -= rows[-1, first].item()
    return rows.view(scores.shape)


def check_masked_softmax(problem, scores, mask, what, **near):
    """Compare weights with those computed by hand, and require exactly 0 for masked weights."""
    # Pass copies, as another test checks that the arguments do not change.
    actual = problem.masked_softmax(scores.clone(), mask.clone())
    expected = oracles.masked_softmax(scores, mask)
    call = f"masked_softmax(scores, mask) with {what}"
    checks.check_that(actual, oracles.are_weights, call, expected, mask, near)


@pytest.mark.points(0.5)
def test_masked_softmax_in_numbers(problem):
    """masked_softmax returns the weights of the worked example"""
    actual = problem.masked_softmax(scores=example.Q @ example.K.T / math.sqrt(8), mask=triangle(4))
    call = "masked_softmax(scores, mask) with the scaled scores of the worked example, shape (4, 4)"
    checks.check_that(actual, oracles.are_weights, call, oracles.WEIGHTS, triangle(4), {})


@pytest.mark.points(0.75)
@pytest.mark.parametrize("case", ["equal scores", "one place left", "long rows"])
def test_masked_softmax_of_special_rows(problem, rng, case):
    """masked_softmax is correct for equal scores, a single allowed score, and 500 scores"""
    scores, mask = {
        "equal scores": (torch.zeros(3, 3), triangle(3)),
        "one place left": (rng.normal(2, 3, 4), torch.eye(4)[[2, 0, 3]].bool()),
        "long rows": (rng.normal(2, 500), torch.arange(500) < torch.tensor([[500], [300]])),
    }[case]
    what = f"scores of shape {tuple(scores.shape)}, {case}"
    check_masked_softmax(problem, with_a_zero(scores, mask), mask, what)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("shape", "mask_shape"),
    [
        ((4, 6), (4, 6)),
        ((3, 4, 6), (4, 6)),
        ((3, 2, 4, 5), (3, 1, 1, 5)),
        ((2, 3, 4, 6), (6,)),
        ((1, 3, 1, 5), (1, 5)),
    ],
    ids=str,
)
def test_masked_softmax_with_any_mask(problem, rng, shape, mask_shape):
    """masked_softmax returns the softmax of the allowed scores of each row, for any mask"""
    mask = random_mask(rng, *mask_shape)
    scores = with_a_zero(rng.normal(*shape) * 2, mask)
    what = f"scores of shape {shape} and a mask of shape {mask_shape}"
    check_masked_softmax(problem, scores, mask, what)


# exp(huge) overflows, and -huge is below -1e9 and -1e30. In float64, the sum of `huge` and the
# lowest number of the dtype is greater than -3.5 * huge, so adding that number does not mask.
HUGE = {torch.float32: 6e37, torch.float64: 4e307}


def huge_scores(dtype):
    """Return scores and a mask, with a different numerical difficulty in each row."""
    huge = HUGE[dtype]
    rows = {  # the scores, and "1" for each allowed score
        (0.0, huge, -0.5, -huge): "1010",  # huge masked and small allowed scores
        (-huge, 0.2, -2 * huge, 0.5): "1010",  # masked scores far below the allowed ones
        (huge, -huge, -2 * huge, -3 * huge): "0101",  # masked scores far above the allowed ones
        (100.0, -100.5, -101.0, 100.25): "0110",  # exp of the allowed scores is almost 0
        (1000.0, 1001.0, 999.5, -huge): "1110",  # exp of the allowed scores overflows
        (-huge, -1000.0, 2 * huge, huge): "0100",  # a single allowed score
        (huge, -4 * huge, 0.5, -3.5 * huge): "0101",  # allowed scores near the lowest number
    }
    mask = torch.tensor([[mark == "1" for mark in marks] for marks in rows.values()])
    return torch.tensor([*rows], dtype=dtype), mask


def wide(dtype):
    """Return tolerances for the weights of large scores, which float32 rounds."""
    return {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {}


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", list(HUGE), ids=["float32", "float64"])
def test_masked_softmax_of_huge_scores(problem, dtype):
    """masked_softmax is correct when masked or allowed scores are huge or far below 0"""
    scores, mask = huge_scores(dtype)
    what = f"scores of shape (7, 4), with masked and allowed scores up to {4 * HUGE[dtype]:g}"
    check_masked_softmax(problem, scores, mask, what, **wide(dtype))


@pytest.mark.points(0.5)
@pytest.mark.parametrize("size", ["ordinary", "huge"])
def test_masked_softmax_gradients(problem, rng, size):
    """Gradients of masked_softmax are correct, finite, and 0 for masked scores"""
    if size == "huge":
        scores, mask = huge_scores(torch.float32)
    else:
        mask = triangle(6)[:, :4]
        scores = with_a_zero(rng.normal(2, 6, 4), mask)
    upstream = rng.normal(*scores.shape)
    call = f"masked_softmax(scores, mask) with {size} scores of shape {tuple(scores.shape)}"
    scores.requires_grad_()
    weights = problem.masked_softmax(scores.clone(), mask.clone())
    gradients = checks.gradients(weights, {"scores": scores}, upstream, call)
    expected = oracles.masked_softmax_gradient(scores, mask, upstream)
    checks.check_gradients(gradients, expected, call, **wide(scores.dtype))


def masked_softmax_call(problem, rng, lead=(), n=4, m=5, dtype=torch.float32):
    """Return a `robust.Call` of masked_softmax with random arguments."""
    scores, mask = rng.normal(*lead, n, m, dtype=dtype), random_mask(rng, n, m)
    scores[..., 0, 0] += 15  # so that the other weights of this row are below 1e-6
    return robust.Call(
        "masked_softmax(scores, mask)",
        problem.masked_softmax,
        {"scores": with_a_zero(scores, mask), "mask": mask},
        oracles.masked_softmax,
        # Strict, to detect code that adds a small number to the denominator.
        near={"rtol": 1e-12, "atol": 1e-13} if dtype == torch.float64 else {},
    )


@pytest.mark.points(1)
@robust.parts("float16", "bfloat16", "float32", "float64", "sizes of one", *robust.KEPT)
def test_masked_softmax_in_use(problem, rng, part):
    """masked_softmax follows the rules for all problems"""
    make = partial(masked_softmax_call, problem, rng)
    robust.check_part(part, rng, make, sizes="lead n m")


# CausalAttention

# Tolerances for gradients in float32, which are sums of many rounded terms
SUMMED = {"rtol": 1e-3, "atol": 3e-4}


def make_attention(problem, weights, n_positions):
    """Return the student's CausalAttention with these weights and their dtype."""
    n_embd, bias = len(weights["query.weight"]), "query.bias" in weights
    return example.load_weights(problem.CausalAttention(n_embd, n_positions, bias), weights)


def check_attention(problem, x, weights, n_positions, what="", training=True, **near):
    """Compare the output of the student's CausalAttention with the output computed by hand."""
    layer = make_attention(problem, weights, n_positions).train(training)
    sizes = f"{x.shape[-1]}, {n_positions}, bias={'query.bias' in weights}"
    mode = "" if training else ".eval()"
    call = f"CausalAttention({sizes}){mode}(x) with x of shape {tuple(x.shape)}{what}"
    checks.check(layer(x.clone()), oracles.output(x, weights), call, **near)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_layers(problem, bias):
    """The only layers are query, key and value; they start from random weights"""
    make = partial(problem.CausalAttention, n_embd=6, n_positions=4, bias=bias)
    example.check_layers(make(), 6, bias)
    example.check_random_start(make, example.LAYERS, f"CausalAttention(6, 4, bias={bias})")


@pytest.mark.points(0.25)
def test_defaults(problem):
    """CausalAttention() has the width 768, 1024 positions and biases"""
    example.check_layers(problem.CausalAttention(n_positions=3), 768)
    # Read the default, as creating a mask of 1024 positions in Python loops takes many seconds.
    parameter = inspect.signature(problem.CausalAttention).parameters.get("n_positions")
    default = parameter and parameter.default
    checks.check_that(default, oracles.default_positions, "CausalAttention(n_embd=2)")


def check_mask(layer, n_positions, call):
    """Require that the layer has the causal mask as a buffer `mask`, in any dtype."""
    buffers = dict(layer.named_buffers())
    checks.require("mask" in buffers, f"There is no buffer `mask`. The buffers are: {[*buffers]}.")
    expected = oracles.causal_mask(n_positions).double()
    checks.check(buffers["mask"].double(), expected, f"{call}, as numbers 0 and 1")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("n_positions", [5, 8, 1])
def test_mask_is_a_buffer(problem, n_positions):
    """The causal mask of all positions is a buffer `mask`, not a parameter"""
    layer = problem.CausalAttention(3, n_positions)
    trained = "mask" in parameters(layer) or getattr(layer.mask, "requires_grad", False)
    checks.require(
        not trained, "`mask` is a parameter, so it would be trained. It should be a buffer."
    )
    check_mask(layer, n_positions, f"the buffer mask of CausalAttention(3, {n_positions})")


@pytest.mark.points(1.5)
def test_attention_in_numbers(problem):
    """CausalAttention returns the output of the worked example"""
    # Token i is a unit vector: its entry i is 1. So a layer maps it to column i of its weight.
    tokens = torch.eye(4, 8)[None]
    tables = zip(example.LAYERS, (example.Q, example.K, example.V), strict=True)
    weights = {f"{name}.weight": torch.cat([rows.T, 0 * rows.T], 1) for name, rows in tables}
    weights |= {f"{name}.bias": torch.zeros(8) for name in example.LAYERS}
    actual = make_attention(problem, weights, n_positions=6)(tokens)
    call = "CausalAttention(8, 6)(x) with the queries, keys and values of the worked example"
    checks.check(actual, oracles.OUTPUT[None], call)


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
    """Each output is a weighted average of the values up to its position"""
    x, weights = rng.normal(*shape), example.random_weights(rng, shape[-1], bias=bias)
    sizes = {"n_embd": shape[-1]}
    check_attention(problem, x, weights, n_positions, training=bias, sizes=sizes)


@pytest.mark.points(1)
@pytest.mark.parametrize("what", ["outputs", "gradients"])
@pytest.mark.parametrize("size", [1, 1e15], ids=str)
def test_no_look_ahead(problem, rng, size, what):
    """Later tokens of any size change neither earlier outputs nor their gradients"""
    weights = example.random_weights(rng, 3)
    layer = make_attention(problem, weights, n_positions=7)
    for n_first in (1, 2, 4):
        call = f"the first {n_first} outputs of CausalAttention(3, 7)(x) with x of shape (2, 5, 3) "
        call += f"and later tokens near {size:g}"
        first, later = rng.normal(2, n_first, 3), rng.normal(2, 5 - n_first, 3) * size
        x = torch.cat([first, later], dim=1).requires_grad_()
        actual = layer.train(n_first < 3)(x.clone())
        if what == "outputs":
            outputs = checks.check_form(actual, x, call)[:, :n_first]
            checks.check(outputs, oracles.output(first, weights), call)
            continue
        upstream = torch.cat([rng.normal(2, n_first, 3), torch.zeros_like(later)], dim=1)
        inputs = {"x": x} | example.trained_parameters(layer, weights)
        gradients = checks.gradients(actual, inputs, upstream, call)
        checks.check_gradients(gradients, oracles.slopes(x, weights, upstream), call, **SUMMED)


@pytest.mark.points(0.25)
def test_attention_of_equal_scores(problem, rng):
    """Where all scores are 0, each output is the mean of the values up to its position"""
    x, weights = rng.normal(2, 4, 3), example.random_weights(rng, 3)
    weights["query.weight"], weights["query.bias"] = torch.zeros(3, 3), torch.zeros(3)
    check_attention(problem, x, weights, 5, ", where all queries are 0")


@pytest.mark.points(0.5)
def test_weights_of_the_last_token(problem, rng):
    """The weights of the last token are the softmax of its scaled scores"""
    # A scale by another size, or its half, square or root, would give a different result. Entry i
    # of the value of token i is 1, its other entries are 0, so each output equals the weights.
    x = torch.eye(7, 11).repeat(3, 1, 1)
    weights = example.random_weights(rng, 11)
    weights |= {"value.weight": torch.eye(11), "value.bias": torch.zeros(11)}
    actual = make_attention(problem, weights, n_positions=13)(x.clone())
    call = "the last output of CausalAttention(11, 13)(x) with x of shape (3, 7, 11), which is the "
    call += "weights of the last token"
    checks.check(actual[:, -1], oracles.output(x, weights)[:, -1], call, sizes={"d_k": 11})


@pytest.mark.points(0.5)
@pytest.mark.parametrize("batch", [1, 8])
def test_longest_sequence(problem, rng, batch):
    """n_positions tokens are accepted, and more tokens raise ValueError"""
    weights = example.random_weights(rng, 3)
    check_attention(problem, rng.normal(batch, 4, 3), weights, 4)
    # n_positions = 1 is tested, as a mask of shape (1, 1) broadcasts to any length.
    for n_positions, length in [(4, 5), (4, 9), (1, 2), (1, 4)]:
        layer, x = make_attention(problem, weights, n_positions), rng.normal(batch, length, 3)
        call = f"CausalAttention(3, {n_positions})(x) with x of shape {tuple(x.shape)}"
        example.check_refused(call, partial(layer, x))
        with torch.no_grad():
            example.check_refused(f"{call}, in evaluation", partial(layer.eval(), x))


@pytest.mark.points(0.25)
def test_attention_of_large_tokens(problem, rng):
    """CausalAttention is correct for tokens near 1e12"""
    x, weights = rng.normal(2, 4, 3), example.random_weights(rng, 3)
    # The score of two tokens is minus the product of their first entries. For the first token with
    # itself, it is far below 0. The scores of a row differ by more than the rounding errors.
    x[..., 0] = torch.tensor([-2.0, 3.0, 1.0, -1.0])
    first = torch.tensor([1.0, 0.0, 0.0]).diag()
    weights |= {"query.weight": first, "key.weight": -first}
    check_attention(problem, x * 1e12, weights, 6, ", tokens near 1e12", atol=1e8)


def attention_call(problem, rng, batch=2, length=4, n_embd=3, dtype=torch.float32):
    """Return a `robust.Call` of a CausalAttention with random arguments."""
    weights = example.random_weights(rng, n_embd, dtype=dtype)
    x = rng.normal(batch, length, n_embd, dtype=dtype)
    return robust.Call(
        f"CausalAttention({n_embd}, 6)(x)",
        make_attention(problem, weights, n_positions=6),
        {"x": x},
        lambda x: oracles.output(x.double(), weights).to(dtype),
        weights=weights,
        slopes=partial(oracles.slopes, x, weights),
        # bfloat16 has three digits, and the sum of five products has fewer correct digits.
        near={"rtol": 0.2, "atol": 0.2} if dtype == torch.bfloat16 else {},
    )


@pytest.mark.points(1.25)
@robust.parts("bfloat16", *robust.COMMON)
def test_attention_in_use(problem, rng, part):
    """CausalAttention follows the rules for all problems"""
    make = partial(attention_call, problem, rng)
    robust.check_part(part, rng, make, sizes="batch length n_embd", other={"length": 5})


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_attention_is_your_own(problem, rng):
    """CausalAttention does not call PyTorch's attention functions and modules"""
    x = rng.normal(2, 3, 6)
    checks.check_form(problem.CausalAttention(6, 4)(x.clone()), x, "CausalAttention(6, 4)(x)")


# --- hidden tests ---

from shared import three_layers  # noqa: E402
from shared.oracles import modules  # noqa: E402


def cases(rng):
    """Yield triples (description, scores, mask) for the hidden tests."""
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
        yield f"scores of shape {shape} and a mask of shape {mask_shape}", scores, mask
    square, swapped = rng.normal(2, 5, 5), rng.normal(3, 2, 4, 5).transpose(0, 1)
    yield "the diagonal", square, torch.eye(5, dtype=torch.bool)
    yield "an upper triangle", square, triangle(5).T
    yield "transposed scores and a transposed mask", swapped, example.turned(random_mask(rng, 4, 5))
    expanded = random_mask(rng, 4, 5).expand(2, 3, 4, 5)
    yield "an expanded mask", example.turned(swapped), expanded


def both(solution, problem, weights, n_positions):
    """Return the reference's and the student's CausalAttention, both with these weights."""
    sizes = (len(weights["query.weight"]), n_positions, "query.bias" in weights)
    right = modules.build(weights, solution.CausalAttention, *sizes)
    return right, make_attention(problem, weights, n_positions)


def check_causal_mask(problem, solution, seq_len):
    """Compare the results of two calls of causal_mask with the reference."""
    for actual in answers(problem.causal_mask, [{"seq_len": seq_len}] * 2):
        expected = solution.causal_mask(seq_len)
        checks.check_that(actual, oracles.is_mask, f"causal_mask({seq_len})", expected)


@pytest.mark.points(1.25)
@pytest.mark.parametrize("seq_len", [1, 4, 5, 6, 8, 13, 17, 130, 1030])
def test_hidden_causal_mask(problem, solution, seq_len):
    """causal_mask is correct for other sizes"""
    check_causal_mask(problem, solution, min(seq_len, 300))
    if seq_len > 300:
        with checks.may_be_skipped(f"causal_mask({seq_len})") as skip:
            if not (example.loops_over_pairs(problem.causal_mask) and skip()):
                check_causal_mask(problem, solution, seq_len)


@pytest.mark.points(1)
def test_hidden_masked_softmax(problem, solution, rng):
    """masked_softmax is correct for other sizes and masks, and so are its gradients"""
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
    """CausalAttention is correct for other sizes, in training and in evaluation"""
    weights, x = example.random_weights(rng, shape[-1], bias=bias), rng.normal(*shape)
    right, module = both(solution, problem, weights, n_positions)
    call = f"CausalAttention({shape[-1]}, {n_positions}, bias={bias})(x) with x of shape {shape}"
    checks.check(module.train(bias)(x.clone()), right(x), call, sizes={"n_embd": shape[-1]})


@pytest.mark.points(1.5)
@pytest.mark.parametrize(SIZE_NAMES, SIZES[::2], ids=str)
def test_hidden_attention_gradients(problem, solution, rng, shape, n_positions, bias):
    """Gradients of CausalAttention are correct for other sizes"""
    weights = example.random_weights(rng, shape[-1], bias=bias)
    call = f"CausalAttention({shape[-1]}, {n_positions}, bias={bias})(x) with x of shape {shape}"
    case = (call, {"x": rng.normal(*shape).requires_grad_()})
    pair = both(solution, problem, weights, n_positions)
    example.check_like(*pair, rng, [case], **SUMMED)


@pytest.mark.points(0.25)
def test_hidden_long_sequence(problem, solution, rng):
    """CausalAttention is correct for a sequence of 400 tokens"""
    right, module = both(solution, problem, example.random_weights(rng, 2), 400)
    call = "CausalAttention(2, 400)(x) with x of shape (1, 400, 2)"
    three_layers.check_long_sequence(right, module, rng.normal(1, 400, 2), call)


@pytest.mark.points(0.5)
def test_hidden_numbers_of_any_size(problem, solution, rng):
    """CausalAttention and its gradients are correct for tokens, keys, values, scores of any size"""
    # Use float64, as float32 has few decimals near a million.
    tokens = rng.normal(2, 4, 6, dtype=torch.float64)
    for what, x, weights in example.large_numbers(
        tokens, example.random_weights(rng, 6, dtype=torch.float64)
    ):
        call = f"CausalAttention(6, 5)(x) with x of shape (2, 4, 6), {what}"
        case = (call, {"x": x.requires_grad_()})
        pair = both(solution, problem, weights, 5)
        example.check_like(*pair, rng, [case], rtol=1e-6, atol=1e-4)


@pytest.mark.points(0.75)
def test_hidden_digits(problem, solution, rng):
    """Weights, outputs and gradients have the precision of float64"""
    # Use large numbers, so that some weights are below 1e-6.
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
    """Calls with sequences of different lengths are correct, also after a ValueError"""
    reference, student = both(solution, problem, example.random_weights(rng, 4), 5)
    results = []
    for shape in [(2, 5, 4), (3, 2, 4), (2, 6, 4), (1, 4, 4), (2, 1, 4), (2, 5, 4), (1, 3, 4)]:
        x = rng.normal(*shape)
        call = f"CausalAttention(4, 5)(x) with x of shape {shape}, after other calls"
        if shape[1] > 5:
            example.check_refused(call, lambda x=x: student(x))
        else:
            results.append((student(x.clone()), reference(x), call))
    for actual, expected, call in results:
        checks.check(actual, expected, call)
    check_mask(student, 5, "the buffer mask of CausalAttention(4, 5), after some calls")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("call", [masked_softmax_call, attention_call], ids=["function", "module"])
@robust.parts("nothing changed", "second call")
def test_hidden_in_use(problem, rng, call, part):
    """For other sizes, too, a call changes no argument and does not depend on earlier calls"""
    sizes = {"length": 5, "n_embd": 5} if call is attention_call else {"lead": (2, 1), "n": 3}
    robust.check_part(part, rng, partial(call, problem, rng, **sizes))
