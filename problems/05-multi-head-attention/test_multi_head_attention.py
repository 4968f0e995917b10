"""Tests of problem 05. Run them with `uv run pytest` in this folder."""

import math
from functools import partial

import pytest
import torch
from torch import nn

from grader.code.tensors import parameters
from grader.run import checks
from grader.run.calls import answers
from shared import robust, visible_dropout
from shared import worked_example as example
from shared.oracles import attention, judges
from shared.oracles import multi_head as oracles

# Tolerances for gradients in float32, which are sums of many rounded terms.
SUMMED = {"rtol": 1e-3, "atol": 3e-4}

GPT2_NAMES = ["c_attn.bias", "c_attn.weight", "c_proj.bias", "c_proj.weight"]


# Modules with known weights.


def gpt2_weights(rng, n_embd, *, bias=True, dtype=torch.float32):
    """Return random weights by GPT-2's names, such that scores are neither equal nor far apart."""
    weights = {
        "c_attn.weight": rng.normal(3 * n_embd, n_embd) * 1.2 / math.sqrt(n_embd),
        "c_proj.weight": rng.normal(n_embd, n_embd) / math.sqrt(n_embd),
    }
    biases = {"c_attn.bias": rng.normal(3 * n_embd) / 2, "c_proj.bias": rng.normal(n_embd)}
    weights |= biases if bias else {}
    return {name: weight.to(dtype) for name, weight in weights.items()}


def make_attention(problem, weights, n_head, **options):
    """Return the student's MultiHeadAttention with these weights, in their dtype, after eval()."""
    n_embd = len(weights["c_proj.weight"])
    options = {"dropout": 0.0, "causal": False, "bias": "c_proj.bias" in weights} | options
    module = problem.MultiHeadAttention(n_embd=n_embd, n_head=n_head, **options)
    return example.load_weights(module, weights).eval()


def named(n_embd, n_head, **options):
    """Return the call that makes this layer, as text."""
    extra = "".join(f", {name}={value}" for name, value in options.items())
    return f"MultiHeadAttention({n_embd}, {n_head}{extra})"


# split_heads and merge_heads


@pytest.mark.points(0.75)
def test_heads_in_numbers(problem):
    """split_heads cuts each token into one slice per head, and merge_heads joins the slices"""
    x = torch.tensor([[[1.0, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60]]])
    for n_head in (3, 2):
        call = f"split_heads(x, {n_head}) with x = {x.int().tolist()}"
        checks.check(problem.split_heads(x.clone(), n_head), oracles.split(x, n_head), call)
        heads = torch.arange(1.0, 13.0).reshape(1, n_head, 2, 6 // n_head)
        call = f"merge_heads(x) with x = {heads.int().tolist()}"
        checks.check(problem.merge_heads(heads.clone()), oracles.merge(heads), call)


SIZES = pytest.mark.parametrize(
    ("batch", "seq_len", "n_embd", "n_head"),
    [(3, 4, 6, 2), (2, 5, 6, 3), (1, 3, 4, 4), (2, 6, 10, 5), (2, 4, 3, 1)],
)


@pytest.mark.points(0.5)
@SIZES
def test_split_heads(problem, rng, batch, seq_len, n_embd, n_head):
    """split_heads turns (B, T, C) into (B, n_head, T, C // n_head), one slice for each head"""
    x = rng.normal(batch, seq_len, n_embd)
    call = f"split_heads(x, {n_head}) with x of shape {tuple(x.shape)}"
    checks.check(problem.split_heads(x.clone(), n_head), oracles.split(x, n_head), call)


@pytest.mark.points(0.5)
@SIZES
def test_merge_heads(problem, rng, batch, seq_len, n_embd, n_head):
    """merge_heads is the inverse of split_heads"""
    heads = rng.normal(batch, n_head, seq_len, n_embd // n_head)
    call = f"merge_heads(x) with x of shape {tuple(heads.shape)}"
    checks.check(problem.merge_heads(heads.clone()), oracles.merge(heads), call)


def heads_call(
    problem, rng, name, *, batch=2, seq_len=4, n_head=3, head_dim=2, dtype=torch.float32
):
    """Return a `robust.Call` of split_heads or merge_heads."""
    split = partial(oracles.split, n_head=n_head)
    # The functions only move entries, so the gradient is `upstream`, moved back.
    if name == "split_heads":
        shape, right, back = (batch, seq_len, n_head * head_dim), split, oracles.merge
        call, code = f"split_heads(x, {n_head})", partial(problem.split_heads, n_head=n_head)
    else:
        shape, right, back = (batch, n_head, seq_len, head_dim), oracles.merge, split
        call, code = "merge_heads(x)", problem.merge_heads
    x = rng.normal(*shape, dtype=dtype)
    return robust.Call(call, code, {"x": x}, right, slopes=lambda upstream: {"x": back(upstream)})


@pytest.mark.points(0.75)
@pytest.mark.parametrize("name", ["split_heads", "merge_heads"])
@robust.parts(*robust.COMMON)
def test_heads_in_use(problem, rng, name, part):
    """split_heads and merge_heads follow the rules for all problems"""
    make = partial(heads_call, problem, rng, name)
    robust.check_part(part, rng, make, sizes="batch seq_len n_head head_dim")


# The parts of MultiHeadAttention


def check_parts(module, call, n_embd, n_head, *, dropout=0.0, bias=True):
    """Require that a module has GPT-2's layers by name and size, and no other parameters."""
    sizes = {"n_embd": n_embd, "n_head": n_head, "head_dim": n_embd // n_head}
    for name, size in sizes.items():
        value = getattr(module, name, None)
        fits = type(value) is int and value == size
        checks.require(fits, f"{call} has {name} = {value!r}; expected {size}, an int.")
    checks.check_layer(module, "c_attn", n_embd, 3 * n_embd, bias=bias)
    checks.check_layer(module, "c_proj", n_embd, n_embd, bias=bias)
    for name in ("attn_dropout", "resid_dropout"):
        child = getattr(module, name, None)
        fits = isinstance(child, nn.Dropout) and child.p == dropout
        checks.require(fits, f"`{name}` of {call} is {child}; expected nn.Dropout({dropout}).")
    names, number = parameters(module).keys(), len(list(module.parameters()))
    expected = [name for name in GPT2_NAMES if bias or name.endswith("weight")]
    fits = names >= {*expected} and number == len(expected)
    checks.require(fits, f"The parameters of {call} are {sorted(names)}; expected {expected}.")


@pytest.mark.points(0.75)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_layers(problem, dropout, bias):
    """MultiHeadAttention has GPT-2's layers, with random weights, and no other parameters"""
    for n_head in (3, 12):
        make = partial(problem.MultiHeadAttention, 12, n_head, dropout=dropout, bias=bias)
        call = named(12, n_head, dropout=dropout, bias=bias)
        check_parts(make(), call, 12, n_head, dropout=dropout, bias=bias)
    example.check_random_start(make, ("c_attn", "c_proj"), call)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("n_head", [5, 8, 24, 0, -1, -4])
def test_impossible_heads_are_refused(problem, n_head):
    """A number of heads that is below 1 or does not divide n_embd raises ValueError"""
    make = partial(problem.MultiHeadAttention, 12, n_head)
    example.check_refused(named(12, n_head), make, "12 entries can't be cut into so many heads")


# The output of MultiHeadAttention


def check_attention(problem, weights, x, n_head, what="", training=False, near=None, **options):
    """Compare the output of the student's module with the definition, for these weights."""
    module = make_attention(problem, weights, n_head, **options).train(training)
    made = named(x.shape[-1], n_head, **options) + (".train()" if training else "")
    call = f"{made}(x) with x of shape {tuple(x.shape)}{what}"
    expected = oracles.output(x, weights, n_head, options.get("causal", False))
    checks.check(module(x.clone()), expected, call, **(near or {}))


@pytest.mark.points(0.25)
def test_one_token(problem, rng):
    """The output of a single token is c_proj of its value, the last third of c_attn's output"""
    weights, x = visible_dropout.identity_weights(6), rng.normal(1, 1, 6)
    weights["c_attn.weight"][:] = 0
    weights["c_attn.bias"] = torch.arange(1.0, 19.0)
    what = (
        ": a single token, whose output of c_attn is 1 to 6 (query), 7 to 12 (key) and 13 to 18 "
        "(value); c_proj is the identity"
    )
    sizes = {"head_dim": 3, "n_embd": 6, "n_head": 2}
    check_attention(problem, weights, x, 2, what, near={"sizes": sizes})


@pytest.mark.points(0.5)
def test_weights(problem, rng):
    """In every head, the weights of a query are softmax(scores / √head_dim), over the keys"""
    weights, x = gpt2_weights(rng, 10), torch.eye(10)[None, :3]
    # The values of each head are the identity, and so is c_proj.
    weights["c_attn.weight"][20:] = torch.eye(5, 10).repeat(2, 1)
    weights["c_attn.bias"][20:] = 0
    identity = visible_dropout.identity_weights(10)
    weights |= {name: w for name, w in identity.items() if "c_proj" in name}
    call = (
        f"{named(10, 2)}(x) with x of shape (1, 3, 10), where the values of each head and c_proj "
    )
    call += "are the identity, so the output is the weights"
    output = checks.check_form(make_attention(problem, weights, 2)(x.clone()), x, call)
    both = (output, oracles.output(x, weights, 2))
    by_head = [each.reshape(1, 3, 2, 5).transpose(1, 2) for each in both]
    sizes = {"head_dim": 5, "n_embd": 10, "T": 3, "n_head": 2}
    checks.check(*by_head, f"{call}, as (batch, head, query, key)", sizes=sizes)


FORWARD_SIZES = pytest.mark.parametrize(
    ("shape", "n_head", "bias"),
    [
        ((2, 4, 6), 2, True),
        ((3, 5, 6), 3, True),
        ((2, 3, 5), 1, True),
        ((1, 5, 4), 4, False),
        ((1, 1, 6), 2, True),
        ((2, 7, 10), 2, True),
    ],
    ids=str,
)


@pytest.mark.points(0.75)
@FORWARD_SIZES
def test_attention_by_hand(problem, rng, shape, n_head, bias):
    """MultiHeadAttention is right without a mask, for several sizes"""
    weights = gpt2_weights(rng, shape[-1], bias=bias)
    check_attention(problem, weights, rng.normal(*shape), n_head, bias=bias)


@pytest.mark.points(1.75)
@FORWARD_SIZES
def test_causal_attention_by_hand(problem, rng, shape, n_head, bias):
    """With causal=True each token attends to itself and to all earlier tokens"""
    weights = gpt2_weights(rng, shape[-1], bias=bias)
    check_attention(problem, weights, rng.normal(*shape), n_head, causal=True, bias=bias)


@pytest.mark.points(0.75)
def test_future_is_hidden(problem, rng):
    """With causal=True later tokens do not change earlier outputs, in training and evaluation"""
    weights, x = gpt2_weights(rng, 6), rng.normal(2, 5, 6)
    module = make_attention(problem, weights, 2, causal=True)
    for mode in ("train", "eval"):
        call = f"{named(6, 2, causal=True)}.{mode}()(x) with x of shape (2, 5, 6)"
        module.train(mode == "train")
        before = checks.check_form(module(x.clone()), x, call)
        for n_kept in range(1, 5):
            changed = torch.cat([x[:, :n_kept], rng.normal(2, 5 - n_kept, 6) * 10], dim=1)
            after = checks.check_form(module(changed), x, call)
            what = f"the first {n_kept} outputs of {call}, when all later tokens are changed"
            checks.check_same(after[:, :n_kept], before[:, :n_kept], what)


@pytest.mark.points(1.25)
def test_worked_example(problem):
    """One causal head gives the output of the worked example"""
    # Token t is unit vector t, so its query, key and value are column t of the weights of c_attn.
    weights = visible_dropout.identity_weights(8)
    weights["c_attn.weight"][:, :4] = torch.cat([example.Q, example.K, example.V], dim=1).T
    x = torch.eye(8)[None, :4]
    module = make_attention(problem, weights, 1, causal=True)
    call = f"{named(8, 1, causal=True)}(x) with the queries, keys and values of the worked example"
    checks.check(module(x.clone()), attention.CAUSAL_OUTPUT[None], call)


@pytest.mark.points(0.25)
def test_no_dropout_in_evaluation(problem, rng):
    """After eval(), and with dropout=0.0 also in training, nothing is dropped"""
    weights, x = gpt2_weights(rng, 6), rng.normal(2, 4, 6)
    for dropout, training in [(0.0, True), (0.6, False)]:
        options = {"dropout": dropout, "causal": True}
        check_attention(problem, weights, x, 2, training=training, **options)


LOW, HIGH = "all scores but the last far below 0", "one future score far above the others"
APART, LARGE = "rows of scores thousands apart", "values of thousands"
EXTREMES = pytest.mark.parametrize(
    ("case", "causal"),
    [(LOW, True), (HIGH, True), (APART, True), (APART, False), (LARGE, True), (LARGE, False)],
)


def extreme(rng, case, n_embd, n_head):
    """Return weights, tokens and tolerances for `case`, which is one of the EXTREMES."""
    weights, x = visible_dropout.identity_weights(n_embd), rng.normal(2, 5, n_embd)
    weight, bias = weights["c_attn.weight"], weights["c_attn.bias"]
    query = torch.arange(0, n_embd, n_embd // n_head)
    key, value = n_embd + query, -n_embd
    if case == LOW:  # the last score is the largest, even if a mask adds float32's lowest number
        bias[query], bias[key], weight[key, 0] = 1.8e19, -1.7e19, 1e17
        x[:, -1, 0] = 340
        return weights, x, {}
    if case == LARGE:
        weight[value:] *= 5000
        return weights, rng.normal(1, 100, n_embd), {"atol": 0.1}
    weight[value, 0] = 0  # keep the large entry 0 of x out of the values
    if case == HIGH:
        bias[query], weight[key, 0] = 1, 1
        x[:, -1, 0] = 1e30
        return weights, x, {}
    bias[key], weight[query, 0] = 1, 1
    x[:, :, 0] = torch.tensor([4000.0, -4000, 0, 2000, -2000])
    return weights, x, {"rtol": 1e-2, "atol": 1e-2}  # rounding errors of scores are 0.0002


@pytest.mark.points(1)
@EXTREMES
def test_extreme_scores(problem, rng, case, causal):
    """Scores and values may have any size, and later tokens have the weight 0"""
    weights, x, near = extreme(rng, case, 6, 2)
    check_attention(problem, weights, x, 2, f", {case}", near=near, causal=causal)


def attention_call(
    problem, rng, *, batch=2, seq_len=3, n_head=2, head_dim=2, causal=True, dtype=torch.float32
):
    """Return a `robust.Call` of a MultiHeadAttention in evaluation mode."""
    n_embd = n_head * head_dim
    weights = gpt2_weights(rng, n_embd, dtype=dtype)
    x, options = rng.normal(batch, seq_len, n_embd, dtype=dtype), {"dropout": 0.3, "causal": causal}
    return robust.Call(
        f"{named(n_embd, n_head, **options)}.eval()(x)",
        make_attention(problem, weights, n_head, **options),
        {"x": x},
        lambda x: oracles.output(x, weights, n_head, causal),
        weights=weights,
        slopes=partial(oracles.slopes, x, weights, n_head, causal),
    )


@pytest.mark.points(1.75)
@robust.parts(*robust.COMMON)
def test_attention_in_use(problem, rng, part):
    """MultiHeadAttention follows the rules for all problems"""
    make, sizes = partial(attention_call, problem, rng), "batch seq_len n_head head_dim"
    robust.check_part(part, rng, make, sizes=sizes, other={"seq_len": 5})


@pytest.mark.points(0.5)
@pytest.mark.parametrize(("causal", "length"), [(False, 1100), (True, 2100)], ids=["all", "causal"])
def test_sequences_of_any_length(problem, rng, causal, length):
    """Sequences may be longer than GPT-2's 1024 positions"""
    weights, x, places = gpt2_weights(rng, 2), rng.normal(1, length, 2), [0, 1, 700, length - 1]
    module = make_attention(problem, weights, 1, causal=causal)
    call = f"{named(2, 1, causal=causal)}(x) with x of shape {tuple(x.shape)}"
    with checks.may_be_skipped(call) as skip:
        # Python loops over pairs of positions would take minutes.
        slow = example.loops_over_pairs(lambda length: module(torch.zeros(1, length, 2)))
        if slow and skip():
            return
        with torch.no_grad():  # autograd's graph of a loop would take gigabytes
            output = checks.check_form(module(x.clone()), x, call)[:, places]
        expected = oracles.output(x, weights, 1, causal, places)
        checks.check(output, expected, f"{call}, at the positions {places}")


# Dropout


def module_with_visible_dropout(problem, scores, dropout, causal=False):
    """Return a module in training mode, an input sequence, and the text of the call.

    Only a correct output shows which entries dropout drops. So it is first checked after eval().
    """
    make = partial(make_attention, problem, dropout=dropout, causal=causal)
    module, sequence = visible_dropout.attention_with_visible_dropout(make, scores)
    layer = named(sequence.shape[-1], len(scores), dropout=dropout, causal=causal)
    expected = judges.output_without_dropout(scores, causal)
    checks.check(module.eval()(sequence[None].clone()), expected, f"{layer}.eval()(x)")
    return module.train(), sequence, f"{layer}(x) in training"


def check_dropout(problem, scores, dropout, causal=False, batch=320):
    """Require that weights and output entries are dropped as by nn.Dropout."""
    module, sequence, call = module_with_visible_dropout(problem, scores, dropout, causal)
    x = sequence.repeat(batch, 1, 1)
    torch.default_generator.manual_seed(3)
    output = checks.check_form(module(x.clone()), x, call)
    checks.check_that(output, judges.drops_weights_and_entries, call, scores, dropout, causal)


@pytest.mark.points(1)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_dropout_in_training(problem, rng, causal):
    """In training, weights and output entries are dropped at random, and the rest is scaled up"""
    check_dropout(problem, rng.normal(2, 3, 3), 0.25, causal)


@pytest.mark.points(0.25)
def test_dropout_is_drawn_anew(problem, rng):
    """In training, each call drops different entries, except after the same torch.manual_seed"""
    scores, dropout = rng.normal(2, 3, 3), 0.25
    module, sequence, call = module_with_visible_dropout(problem, scores, dropout)
    x = sequence.repeat(8, 1, 1)

    def seeded(seeds):
        calls = answers(module, [(x.clone(),) for _ in seeds], seeds.values())
        return dict(zip(seeds, calls, strict=True))

    outputs = seeded({"first": 1, "again": 1, "other": 2}) | {"next": module(x.clone())}
    outputs |= seeded({seed: seed for seed in range(3, 13)})
    outputs = {name: checks.check_form(output, x, call) for name, output in outputs.items()}
    checks.check_that(outputs, judges.drops_differently, call, scores, dropout)


# The arguments of MultiHeadAttention


@pytest.mark.points(0.25)
def test_defaults(problem, rng):
    """MultiHeadAttention() has GPT-2's width and heads, no dropout, biases, and is not causal"""
    check_parts(problem.MultiHeadAttention(), "MultiHeadAttention()", 768, 12)
    weights, x = gpt2_weights(rng, 6), rng.normal(1, 3, 6)
    module = example.load_weights(problem.MultiHeadAttention(6, 2), weights).eval()
    checks.check(module(x.clone()), oracles.output(x, weights, 2), f"{named(6, 2)}.eval()(x)")


@pytest.mark.points(0.25)
def test_names_and_positions(problem, rng):
    """All arguments can be passed by name or by position, in the order of the docstrings"""
    x, heads = rng.normal(2, 4, 6), rng.normal(2, 3, 4, 2)
    split, merged = problem.split_heads(n_head=3, x=x.clone()), problem.merge_heads(x=heads.clone())
    checks.check(split, oracles.split(x, 3), "split_heads(n_head=3, x=x)")
    checks.check(merged, oracles.merge(heads), "merge_heads(x=x)")
    by_position = problem.MultiHeadAttention(6, 2, 0.25, True, False)
    options = {"bias": False, "causal": True, "dropout": 0.25}
    by_name = problem.MultiHeadAttention(**options, n_head=2, n_embd=6)
    weights = gpt2_weights(rng, 6, bias=False)
    for module, call in [
        (by_position, "MultiHeadAttention(6, 2, 0.25, True, False)"),
        (by_name, named("n_embd=6", "n_head=2", **options)),
    ]:
        check_parts(module, call, 6, 2, dropout=0.25, bias=False)
        actual = example.load_weights(module, weights).eval()(x=x.clone())
        checks.check(actual, oracles.output(x, weights, 2, True), f"{call}.eval()(x=x)")


def check_gradients_in_training(problem, rng, n_embd, n_head, dropout, causal):
    """Compare gradients with numerical slopes. Dropout drops the same entries in each call."""
    # Slopes need float64: differences of float32 outputs are too coarse.
    weights = gpt2_weights(rng, n_embd, dtype=torch.float64)
    x = rng.normal(2, 4, n_embd, dtype=torch.float64)
    module = make_attention(problem, weights, n_head, dropout=dropout, causal=causal).train()
    call = f"{named(n_embd, n_head, dropout=dropout, causal=causal)}(x) in training"
    example.check_gradients_with_dropout(module, weights, x, call, rng)


@pytest.mark.points(0.25)
def test_gradients_in_training(problem, rng):
    """In training with dropout, gradients flow only through entries that are not dropped"""
    check_gradients_in_training(problem, rng, 4, 2, 0.3, causal=False)


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_attention_is_your_own(problem, rng):
    """MultiHeadAttention is written without PyTorch's attention functions and modules"""
    weights, x = gpt2_weights(rng, 4), rng.normal(1, 3, 4)
    for causal in (False, True):
        module = make_attention(problem, weights, 2, causal=causal, dropout=0.1)
        for training in (True, False):
            output = module.train(training)(x.clone())
            checks.check_form(output, x, f"{named(4, 2, causal=causal, dropout=0.1)}(x)")


# --- hidden tests ---

from shared.oracles import hidden_multi_head as hidden_judges  # noqa: E402
from shared.oracles import modules  # noqa: E402


def make_right(solution, weights, n_head, **options):
    """Return the reference's MultiHeadAttention with these weights, after eval()."""
    options = {"bias": "c_proj.bias" in weights} | options
    n_embd = len(weights["c_proj.weight"])
    return modules.build(weights, solution.MultiHeadAttention, n_embd, n_head, **options).eval()


def both(problem, solution, weights, n_head, **options):
    """Return the student's module and the reference's, with the same weights."""
    right = make_right(solution, weights, n_head, **options)
    return make_attention(problem, weights, n_head, **options), right


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    ("batch", "seq_len", "n_embd", "n_head"),
    [
        (2, 3, 20, 4),
        (3, 7, 12, 2),
        (1, 2, 35, 5),
        (5, 1, 8, 8),
        (2, 9, 7, 1),
        (4, 2, 18, 3),
        (1, 300, 6, 2),
        (300, 1, 6, 3),
        (1, 2, 300, 2),
        (1, 1, 300, 150),
    ],
)
def test_hidden_heads(problem, solution, rng, batch, seq_len, n_embd, n_head):
    """split_heads and merge_heads are right for other sizes, and so are their gradients"""
    x = rng.normal(batch, seq_len, n_embd).requires_grad_()
    call = f"split_heads(x, {n_head}) with x of shape {tuple(x.shape)}"
    expected = solution.split_heads(x, n_head)
    shape = (batch, n_head, seq_len, n_embd // n_head)
    upstream = rng.normal(*shape)
    actual = problem.split_heads(x=example.turned(x.clone()), n_head=n_head)
    checks.check(actual, expected, call)
    example.check_same_gradients(actual, expected, {"x": x}, upstream, call)
    heads = rng.normal(*shape).requires_grad_()
    call = f"merge_heads(x) with x of shape {tuple(heads.shape)}"
    expected = solution.merge_heads(heads)
    upstream = rng.normal(*x.shape)
    actual = problem.merge_heads(x=example.turned(heads.clone()))
    checks.check(actual, expected, call)
    example.check_same_gradients(actual, expected, {"x": heads}, upstream, call)


@pytest.mark.points(3.75)
@pytest.mark.parametrize(
    ("shape", "n_head", "bias", "causal"),
    [
        ((3, 6, 20), 4, True, True),
        ((2, 9, 14), 2, False, True),
        ((1, 8, 15), 5, True, True),
        ((2, 3, 7), 7, True, True),
        ((2, 5, 4), 1, True, True),
        ((300, 2, 6), 3, True, True),
        ((4, 1, 6), 3, True, False),
        ((2, 9, 14), 2, False, False),
        ((1, 2, 140), 70, True, False),
    ],
    ids=str,
)
def test_hidden_attention(problem, solution, rng, shape, n_head, bias, causal):
    """MultiHeadAttention is right for other sizes, and so are all its gradients"""
    weights = gpt2_weights(rng, shape[-1], bias=bias)
    student, reference = both(problem, solution, weights, n_head, causal=causal)
    student.train(bias)  # Without dropout, train() and eval() are the same, for gradients too.
    call = f"{named(shape[-1], n_head, causal=causal, bias=bias)}(x) with x of shape {shape}"
    x = rng.normal(*shape)
    case = (call, {"x": (example.turned(x) if causal else x).requires_grad_()})
    example.check_like(reference, student, rng, [case], **SUMMED)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize(("n_embd", "n_head"), [(10, 5), (9, 1), (4, 4), (32, 16)])
def test_hidden_gpt2_names(problem, solution, rng, n_embd, n_head, bias):
    """Weights under GPT-2's names can be loaded, and the attributes are right for other sizes"""
    module = problem.MultiHeadAttention(n_embd, n_head, 0.4, True, bias)
    call = named(n_embd, n_head, dropout=0.4, bias=bias)
    check_parts(module, call, n_embd, n_head, dropout=0.4, bias=bias)
    weights, x = gpt2_weights(rng, n_embd, bias=bias), rng.normal(2, 3, n_embd)
    unknown = module.load_state_dict(weights, strict=False).unexpected_keys
    checks.require(not unknown, f"{call} has no place for the weights {unknown}.")
    reference = make_right(solution, weights, n_head, causal=True)
    call += "(x) with weights loaded by load_state_dict"
    checks.check(module.eval()(x.clone()), reference(x), call)


@pytest.mark.points(1.25)
@EXTREMES
def test_hidden_extreme_scores(problem, rng, case, causal):
    """In layers of other sizes, too, scores and values may have any size"""
    weights, x, near = extreme(rng, case, 15, 5)
    check_attention(problem, weights, x, 5, f", {case}", near=near, causal=causal)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_hidden_precision(problem, solution, rng, causal):
    """Outputs and gradients keep all digits of float64"""
    weights = gpt2_weights(rng, 15, dtype=torch.float64)
    student, reference = both(problem, solution, weights, 5, causal=causal)
    x = rng.normal(3, 6, 15, dtype=torch.float64)
    x[1:] *= 4  # large tokens, so that some attention weights are below 1e-6
    case = (f"{named(15, 5, causal=causal)}(x) in float64", {"x": x.requires_grad_()})
    example.check_like(reference, student, rng, [case], all_digits=True)


@pytest.mark.points(0.5)
@robust.parts("nothing changed", "second call")
def test_hidden_in_use(problem, rng, part):
    """For other sizes, too, a call changes no argument and does not depend on earlier calls"""
    sizes = {"seq_len": 5, "n_head": 3, "head_dim": 4}
    make = partial(attention_call, problem, rng, causal=False, **sizes)
    robust.check_part(part, rng, make, other={"seq_len": 8})


@pytest.mark.points(2)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize(("n_head", "seq_len", "dropout"), [(2, 3, 0.4), (4, 2, 0.2), (1, 1, 0.3)])
def test_hidden_dropout(problem, rng, n_head, seq_len, dropout, causal):
    """For other sizes and rates too, weights and output entries are dropped at random"""
    check_dropout(problem, rng.normal(n_head, seq_len, seq_len), dropout, causal, batch=400)


@pytest.mark.points(0.5)
def test_hidden_dropout_modes(problem, solution, rng):
    """train() and eval() switch dropout on and off, any number of times"""
    weights, x = gpt2_weights(rng, 10), rng.normal(1, 18, 10)
    student, reference = both(problem, solution, weights, 5, causal=True, dropout=0.5)
    expected = reference(x)
    call = f"{named(10, 5, causal=True, dropout=0.5)}"
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        output = checks.check_form(student.train()(x.clone()), x, f"{call}.train()(x)")
        checks.check_that(output, hidden_judges.half_is_dropped, f"{call}.train()(x)")
        checks.check(student.eval()(x.clone()), expected, f"{call}.eval()(x)")


@pytest.mark.points(0.25)
def test_hidden_gradients_in_training(problem, rng):
    """For other sizes too, gradients in training flow only through entries that are not dropped"""
    check_gradients_in_training(problem, rng, 6, 3, 0.2, causal=True)
