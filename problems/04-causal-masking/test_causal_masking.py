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


def check_device(problem, seq_len, device):
    """Compare a mask that is made on this device, and require that no mask is made on no device."""
    call, expected = f"causal_mask({seq_len}, device={device!r})", oracles.causal_mask(seq_len)
    checks.check_that(problem.causal_mask(seq_len, device), oracles.is_mask, call, expected)
    try:
        problem.causal_mask(seq_len, device="nowhere")
    except RuntimeError:
        return  # PyTorch looked for it
    call = f'causal_mask({seq_len}, device="nowhere")'
    message = "There is no such device, and a mask came back: `device` isn't used."
    checks.require(False, f"{call}\n{message}")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")], ids=["name", "torch.device"])
def test_causal_mask_takes_a_device(problem, device):
    """causal_mask takes a device, by its name or as a torch.device"""
    check_device(problem, 3, device)


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


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("shape", "mask_shape"),
    [
        ((4, 6), (4, 6)),
        ((3, 4, 6), (4, 6)),
        ((3, 2, 5), (3, 2, 5)),
        ((2, 3, 4, 6), (1, 1, 4, 6)),
        ((3, 2, 4, 5), (3, 1, 4, 5)),
        ((3, 2, 4, 5), (3, 1, 1, 5)),
        ((2, 3, 4, 6), (6,)),
        ((1, 3, 1, 5), (1, 5)),
    ],
    ids=str,
)
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
    scores = [
        [0.0, huge, -0.5, -huge],  # huge masked ones beside small allowed ones
        [-huge, 0.2, -2 * huge, 0.5],  # allowed ones far below the masked ones
        [huge, -huge, -2 * huge, -3 * huge],  # both at once
        [100.0, -100.5, -101.0, 100.25],  # exp of the allowed ones is almost 0
        [1000.0, 1001.0, 999.5, -huge],  # exp of the allowed ones overflows
        [-huge, -1000.0, 2 * huge, huge],  # a single allowed one
        [huge, -4 * huge, 0.5, -3.5 * huge],  # allowed ones near the lowest number there is
    ]
    mask = [
        [True, False, True, False],
        [True, False, True, False],
        [False, True, False, True],
        [False, True, True, False],
        [True, True, True, False],
        [False, True, False, False],
        [False, True, False, True],
    ]
    return torch.tensor(scores, dtype=dtype), torch.tensor(mask)


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


def default_positions(problem):
    """For how many positions a CausalAttention is made, unless told otherwise."""
    parameters = inspect.signature(problem.CausalAttention).parameters
    stated = parameters["n_positions"].default if "n_positions" in parameters else None
    if isinstance(stated, int):
        return stated  # to make so large a mask in Python loops can take many seconds
    small, large = (
        dict(problem.CausalAttention(**sizes).named_buffers()).get("mask")
        for sizes in ({"n_embd": 2, "n_positions": 3}, {"n_embd": 2})
    )
    # A buffer that is not there or has another shape is judged by another test.
    tells = small is not None and large is not None and small.shape[-1:] == (3,)
    return large.shape[-1] if tells else 1024


@pytest.mark.points(0.25)
def test_defaults(problem):
    """CausalAttention() is 768 wide and has 1024 positions and biases"""
    example.check_layers(problem.CausalAttention(n_positions=3), 768)
    found = default_positions(problem)
    checks.check_that(found, oracles.default_positions, "CausalAttention(n_embd=2)")


def check_mask(layer, n_positions, call):
    """See that the layer has a buffer `mask` and that it is the causal mask, in any number type."""
    mask, here = (
        dict(layer.named_buffers()).get("mask"),
        [name for name, _ in layer.named_buffers()],
    )
    checks.require(mask is not None, f"There is no buffer called `mask`. The buffers are: {here}.")
    checks.require(not mask.requires_grad, "`mask` asks for gradients; it isn't to be trained.")
    expected = oracles.causal_mask(n_positions).double()
    checks.check(mask.double(), expected, f"{call}, as numbers 0 and 1")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("n_positions", [5, 8, 1])
def test_mask_is_a_buffer(problem, n_positions):
    """CausalAttention holds the causal mask of all its positions as a buffer that isn't trained"""
    layer = problem.CausalAttention(3, n_positions)
    checks.require(
        "mask" not in parameters(layer),
        "`mask` is a parameter; it should be a buffer, never trained.",
    )
    check_mask(layer, n_positions, f"the buffer mask of CausalAttention(3, {n_positions})")


@pytest.mark.points(1.5)
def test_attention_in_numbers(problem):
    """CausalAttention gives the output of the worked example"""
    # Token i is 1 at place i and 0 elsewhere, so column i of each matrix is what it turns into.
    tokens = torch.eye(4, 8)[None]
    tables = zip(example.LAYERS, (example.Q, example.K, example.V), strict=True)
    weights = {f"{name}.weight": torch.cat([rows.T, 0 * rows.T], 1) for name, rows in tables}
    actual = make_attention(problem, weights, n_positions=6)(tokens)
    checks.check(actual, oracles.OUTPUT[None], "CausalAttention on the worked example")


@pytest.mark.points(2)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize(
    ("shape", "n_positions"),
    [((2, 5, 6), 9), ((4, 3, 10), 5), ((1, 4, 3), 7), ((3, 1, 5), 2), ((1, 6, 2), 8)],
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


@pytest.mark.points(0.5)
def test_no_look_ahead(problem, rng):
    """What comes later changes nothing: the first output is the first token's own value"""
    x, weights = rng.normal(2, 5, 6), example.random_weights(rng, 6)
    layer = make_attention(problem, weights, n_positions=7)
    before = layer(x.clone())
    call = "CausalAttention(6, 7) on x: the first output, which is the first token's own value"
    checks.check(checks.check_form(before, x, call)[:, :1], oracles.output(x[:, :1], weights), call)
    for seen in range(1, 5):
        other = torch.cat([x[:, :seen], rng.normal(2, 5 - seen, 6)], dim=1)
        layer.train(seen < 3)
        mode = "" if seen < 3 else ", in evaluation"
        after = checks.check_form(layer(other.clone()), x, f"CausalAttention(6, 7) on x{mode}")
        call = f"CausalAttention(6, 7){mode}: the first {seen} outputs, once the tokens after are"
        call = f"{call} others"
        checks.check_same(after[:, :seen], before[:, :seen], call)


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
    weights = example.random_weights(rng, 11, bias=False)
    weights["value.weight"] = torch.eye(11)
    actual = make_attention(problem, weights, n_positions=13)(x.clone())
    call = "CausalAttention(11, 13) on x of shape (3, 7, 11): the weights of the last token"
    actual, expected = checks.check_form(actual, x, call), oracles.output(x, weights)
    checks.check(actual[0, -1, :7], expected[0, -1, :7], call, sizes={"d_k": 11})


@pytest.mark.points(0.5)
@pytest.mark.parametrize("batch", [1, 8])
def test_longest_sequence(problem, rng, batch):
    """A sequence of n_positions tokens is fine, and a longer one raises ValueError"""
    weights = example.random_weights(rng, 3)
    layer = make_attention(problem, weights, n_positions=4)
    x = rng.normal(batch, 4, 3)
    call = "CausalAttention(3, 4) on a sequence of 4"
    checks.check(layer(x.clone()), oracles.output(x, weights), call)
    for length in (5, 9):
        call = f"CausalAttention(3, n_positions=4) on a sequence of {length}"
        example.check_refused(call, partial(layer, rng.normal(batch, length, 3)))
    wide = make_attention(problem, example.random_weights(rng, 7), n_positions=2)
    call = "CausalAttention(7, n_positions=2) on a sequence of 3"
    example.check_refused(call, partial(wide, rng.normal(batch, 3, 7)))
    example.check_refused(f"{call}, in eval", partial(wide.eval(), rng.normal(batch, 3, 7)))
    with torch.no_grad():
        example.check_refused(
            f"{call}, in eval, with torch.no_grad()", partial(wide, rng.normal(batch, 3, 7))
        )
    # A mask for one position fits any sequence, as it would be repeated.
    shortest = make_attention(problem, weights, n_positions=1)
    for length in (2, 4):
        call = f"CausalAttention(3, n_positions=1) on a sequence of {length}"
        example.check_refused(call, partial(shortest, rng.normal(batch, length, 3)))


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


@pytest.mark.points(0.25)
def test_huge_tokens_change_nothing_before(problem, rng):
    """Tokens that come later change nothing, however large they are"""
    x, weights = rng.normal(2, 5, 6), example.random_weights(rng, 6)
    layer = make_attention(problem, weights, n_positions=7)
    expected = oracles.output(x, weights)
    for seen in range(1, 5):
        other = torch.cat([x[:, :seen], rng.normal(2, 5 - seen, 6) * 1e15], dim=1)
        call = f"CausalAttention(6, 7): the first {seen} outputs, with tokens near 1e15 after them"
        checks.check(
            checks.check_form(layer(other.clone()), x, call)[:, :seen], expected[:, :seen], call
        )


@pytest.mark.points(0.25)
def test_gradients_before_huge_tokens(problem, rng):
    """Gradients of CausalAttention are right, also where tokens that come later are huge"""
    weights, x, upstream = example.random_weights(rng, 2), rng.normal(4, 3, 2), rng.normal(4, 3, 2)
    x[:, 2:] *= 1e15
    upstream[:, 2:] = 0  # the outputs of the huge tokens themselves don't count
    slopes = oracles.slopes(x, weights, upstream)
    layer = make_attention(problem, weights, n_positions=5)
    inputs = {"x": x.requires_grad_()} | example.trained(layer, weights)
    call = "CausalAttention(2, 5), with tokens near 1e15 after the others"
    found = checks.gradients(layer(x.clone()), inputs, upstream, call)
    checks.check_gradients(found, slopes, call, **SUMMED)


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
        ((7, 7), (7, 7)),
        ((3, 8), (8,)),
        ((6, 5), (1, 5)),
        ((5, 1, 4), (5, 1, 4)),
        ((4, 5, 7), (4, 1, 7)),
        ((4, 2, 6, 6), (2, 6, 6)),
        ((3, 4, 5, 8), (3, 1, 1, 8)),
        ((3, 4, 8, 5), (1, 1, 8, 5)),
        ((5, 2, 3, 7), (5, 1, 3, 7)),
        ((2, 1, 3, 4, 6), (1, 3, 4, 6)),
        ((2, 3, 1, 1), (2, 3, 1, 1)),
        ((2, 300), (300,)),
        ((2, 1100), (2, 1100)),
        ((300, 3), (300, 1)),
        ((300, 1, 2), (300, 1, 2)),
    ]
    for shape, mask_shape in shapes:
        mask = random_mask(rng, *mask_shape)
        scores = with_a_zero(rng.normal(*shape) * 2 + rng.normal(*shape[:-1], 1) * 60, mask)
        call = f"masked_softmax(scores, mask) with scores {shape} and mask {mask_shape}"
        yield call, {"scores": scores.requires_grad_(), "mask": mask}


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


@pytest.mark.points(0.25)
def test_hidden_device(problem):
    """causal_mask makes its mask on the device that it is given"""
    check_device(problem, 5, "cpu")


@pytest.mark.points(0.75)
def test_hidden_masked_softmax(problem, solution, rng):
    """masked_softmax is right for other sizes and masks, and so are its gradients"""
    near = wide(torch.float32)
    example.check_like(solution.masked_softmax, problem.masked_softmax, rng, cases(rng), **near)


@pytest.mark.points(0.25)
def test_hidden_masks_of_other_kinds(problem, solution, rng):
    """masked_softmax is right for a diagonal, triangles, and tensors in any order in memory"""
    square, swapped = rng.normal(2, 5, 5), rng.normal(3, 2, 4, 5).transpose(0, 1)
    masks = {
        "the diagonal": (square, torch.eye(5, dtype=torch.bool)),
        "a lower triangle": (with_a_zero(square, triangle(5)), triangle(5)),
        "an upper triangle": (square, triangle(5).T),
        "a row": (square, random_mask(rng, 5)),
        "a mask for each head of one": (rng.normal(1, 2, 4, 5), random_mask(rng, 1, 2, 4, 5)),
        "a mask for each head": (swapped, random_mask(rng, 1, 2, 4, 5).transpose(0, 1)),
        "a mask that was expanded": (
            example.turned(swapped),
            random_mask(rng, 4, 5).expand(2, 3, 4, 5),
        ),
        "float64": (square.double(), random_mask(rng, 2, 5, 5)),
    }
    cases = [
        (f"masked_softmax(scores, mask) with {what}", {"scores": scores.detach(), "mask": mask})
        for what, (scores, mask) in masks.items()
    ]
    for _, arguments in cases:
        arguments["scores"].requires_grad_()
    example.check_like(solution.masked_softmax, problem.masked_softmax, rng, cases)


@pytest.mark.points(0.25)
@BOTH_DTYPES
def test_hidden_huge_scores(problem, solution, rng, dtype):
    """masked_softmax is right, with finite gradients, for scores of any size"""
    huge = []
    for exponent in (2, 6, 10, 14, 31, 36, 100, 300):
        size = 10.0**exponent
        if size > HUGE[dtype]:
            continue
        for allowed, masked in [(1, size), (-size, 1), (-size, size), (-size, -1), (size, -size)]:
            mask = random_mask(rng, 3, 5)
            sizes = torch.tensor([masked, allowed], dtype=torch.float64)[mask.long()]
            scores = (sizes * (1 + rng.normal(2, 3, 5).abs())).to(dtype)
            call = f"masked_softmax of allowed scores near {allowed:g}, masked ones near {masked:g}"
            huge.append((call, {"scores": scores.requires_grad_(), "mask": mask}))
    example.check_like(solution.masked_softmax, problem.masked_softmax, rng, huge, **wide(dtype))


SIZES = [
    ((3, 7, 4), 11, True),
    ((2, 4, 9), 4, False),
    ((1, 8, 5), 12, True),
    ((5, 1, 7), 3, True),
    ((2, 6, 1), 10, False),
    ((6, 2, 12), 13, True),
    ((2, 12, 8), 16, False),
    ((1, 40, 3), 45, True),
    ((1, 130, 2), 135, True),
    ((1, 3, 3), 300, True),
    ((300, 2, 3), 4, False),
    ((1, 2, 130), 5, True),
]


SIZE_NAMES = ("shape", "n_positions", "bias")


@pytest.mark.points(2.75)
@pytest.mark.parametrize(SIZE_NAMES, SIZES, ids=str)
def test_hidden_attention(problem, solution, rng, shape, n_positions, bias):
    """CausalAttention is right for other sizes, in training and in evaluation"""
    weights = example.random_weights(rng, shape[-1], bias=bias)
    mine, theirs = both(solution, problem, weights, n_positions)
    x = rng.normal(*shape)
    call = f"CausalAttention({shape[-1]}, {n_positions}, bias={bias}) on x of shape {shape}"
    checks.check(theirs.train(bias)(x.clone()), mine(x), call, sizes={"n_embd": shape[-1]})


@pytest.mark.points(0.25)
def test_hidden_long_sequence(problem, solution, rng):
    """CausalAttention takes a sequence of 400 tokens, and the last one looks at all of them"""
    right, module = both(solution, problem, example.random_weights(rng, 2), 400)
    call = "CausalAttention(2, 400)(x) with x of shape (1, 400, 2)"
    three_layers.check_long_sequence(right, module, rng.normal(1, 400, 2), call)


@pytest.mark.points(1.25)
@pytest.mark.parametrize(SIZE_NAMES, SIZES[::2], ids=str)
def test_hidden_attention_gradients(problem, solution, rng, shape, n_positions, bias):
    """Gradients of CausalAttention are right for other sizes"""
    weights = example.random_weights(rng, shape[-1], bias=bias)
    mine, theirs = both(solution, problem, weights, n_positions)
    x, upstream = rng.normal(*shape).requires_grad_(), rng.normal(*shape)
    call = f"CausalAttention({shape[-1]}, {n_positions}, bias={bias}) on x of shape {shape}"
    actual = theirs(x.clone())
    checks.check(actual, mine(x), call)
    found = checks.gradients(actual, {"x": x} | example.trained(theirs, weights), upstream, call)
    checks.check_gradients(found, modules.slopes(mine, x, upstream), call, **SUMMED)


@pytest.mark.points(0.25)
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


@pytest.mark.points(0.25)
def test_hidden_ways_of_use(problem, solution, rng):
    """CausalAttention is right in evaluation, with other weights, and by default"""
    x, weights, others = (
        rng.normal(3, 4, 5),
        example.random_weights(rng, 5),
        example.random_weights(rng, 5),
    )
    pair = both(solution, problem, weights, 6)
    example.check_like_in_use(*pair, rng, x, others, "CausalAttention(5, 6)(x)", **SUMMED)
    right = modules.made(others, solution.CausalAttention, 5, 6)
    module = example.holding(problem.CausalAttention(5, 6), others)
    case = ("CausalAttention(5, 6)(x)", {"x": x.requires_grad_()})
    example.check_like(right, module, rng, [case], **SUMMED)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("size", [1e3, 1e9, 1e15], ids=str)
def test_hidden_future(problem, solution, rng, size):
    """Tokens of any size that come later change neither earlier outputs nor their gradients"""
    mine, theirs = both(solution, problem, example.random_weights(rng, 5), 8)
    for seen in (1, 3, 6):
        now, later = rng.normal(3, seen, 5), rng.normal(3, 7 - seen, 5) * size
        x = torch.cat([now, later], dim=1).requires_grad_()
        upstream = torch.cat([rng.normal(3, seen, 5), torch.zeros_like(later)], dim=1)
        call = f"CausalAttention(5, 8), the first {seen} tokens, those after them near {size:g}"
        expected, right = mine(now), modules.gradients(mine(x), {"x": x}, upstream)
        actual = theirs(x.clone())
        checks.check(checks.check_form(actual, x, call)[:, :seen], expected, call)
        checks.check_gradients(
            checks.gradients(actual, {"x": x}, upstream, call), right, call, **SUMMED
        )


@pytest.mark.points(0.25)
def test_hidden_large_tokens(problem, solution, rng):
    """CausalAttention is right for tokens of any size"""
    for exponent in (2, 6, 11, 16):
        mine, theirs = both(solution, problem, example.random_weights(rng, 4), 6)
        x = rng.normal(9, 5, 4) * 10.0**exponent
        # Of two large scores near each other, rounding decides which is the larger. So only the
        # first position is looked at: it has one score, often far below zero.
        call = f"CausalAttention(4, 6) on tokens near 1e{exponent}"
        expected, near = mine(x)[:, :1], 10.0**exponent * 1e-4
        checks.check(
            checks.check_form(theirs(x.clone()), x, call)[:, :1], expected, call, atol=near
        )


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
