"""Tests of problem 05. Run them with `uv run pytest` in this folder."""

import math
from functools import partial

import pytest
import torch
from torch import nn

from grader.code.tensors import parameters
from grader.run import checks
from grader.run.calls import answers
from shared import robust, telltale
from shared import worked_example as example
from shared.oracles import attention, judges
from shared.oracles import multi_head as oracles

# How near a gradient must be in float32, where it is a sum of many terms that are all rounded.
SUMMED = {"rtol": 1e-3, "atol": 3e-4}

GPT2_NAMES = ["c_attn.bias", "c_attn.weight", "c_proj.bias", "c_proj.weight"]


# Modules with known weights.


def gpt2_weights(rng, n_embd, *, bias=True, dtype=torch.float32):
    """Weights under GPT-2's names, for which the scores are neither all alike nor far apart."""
    weights = {
        "c_attn.weight": rng.normal(3 * n_embd, n_embd) * 1.2 / math.sqrt(n_embd),
        "c_proj.weight": rng.normal(n_embd, n_embd) / math.sqrt(n_embd),
    }
    biases = {"c_attn.bias": rng.normal(3 * n_embd) / 2, "c_proj.bias": rng.normal(n_embd)}
    weights |= biases if bias else {}
    return {name: weight.to(dtype) for name, weight in weights.items()}


def make_attention(problem, weights, n_head, **options):
    """The student's MultiHeadAttention, holding these weights in their dtype, in evaluation."""
    n_embd = len(weights["c_proj.weight"])
    options = {"dropout": 0.0, "causal": False, "bias": "c_proj.bias" in weights} | options
    module = problem.MultiHeadAttention(n_embd=n_embd, n_head=n_head, **options)
    return example.holding(module, weights).eval()


def named(n_embd, n_head, **options):
    """How a student would write the making of this layer."""
    extra = "".join(f", {name}={value}" for name, value in options.items())
    return f"MultiHeadAttention({n_embd}, {n_head}{extra})"


# split_heads and merge_heads


@pytest.mark.points(0.75)
def test_heads_in_numbers(problem):
    """split_heads cuts each token into slices, one per head, and merge_heads joins them again"""
    x = torch.tensor([[[1.0, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60]]])
    for n_head in (3, 2):
        call = f"split_heads(x, {n_head}) with x = {x.int().tolist()}"
        checks.check(problem.split_heads(x.clone(), n_head), oracles.split(x, n_head), call)
        heads = torch.arange(1.0, 13.0).reshape(1, n_head, 2, 6 // n_head)
        call = f"merge_heads(y) with y = {heads.int().tolist()}"
        checks.check(problem.merge_heads(heads.clone()), oracles.merge(heads), call)


SIZES = [(3, 4, 6, 2), (2, 5, 6, 3), (1, 3, 4, 4), (2, 6, 10, 5), (2, 4, 3, 1)]
"""Batch, sequence length, embedding width, number of heads."""


@pytest.mark.points(0.5)
@pytest.mark.parametrize(("batch", "seq_len", "n_embd", "n_head"), SIZES)
def test_split_heads(problem, rng, batch, seq_len, n_embd, n_head):
    """split_heads turns (B, T, C) into (B, n_head, T, C // n_head), each head with its own slice"""
    x = rng.normal(batch, seq_len, n_embd)
    call = f"split_heads(x, {n_head}) with x of shape {tuple(x.shape)}"
    checks.check(problem.split_heads(x.clone(), n_head), oracles.split(x, n_head), call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize(("batch", "seq_len", "n_embd", "n_head"), SIZES)
def test_merge_heads(problem, rng, batch, seq_len, n_embd, n_head):
    """merge_heads is the inverse of split_heads"""
    heads = rng.normal(batch, n_head, seq_len, n_embd // n_head)
    call = f"merge_heads(y) with y of shape {tuple(heads.shape)}"
    checks.check(problem.merge_heads(heads.clone()), oracles.merge(heads), call)


def heads_call(
    problem, rng, name, *, batch=2, seq_len=4, n_head=3, head_dim=2, dtype=torch.float32
):
    """A call of split_heads or merge_heads."""
    x = rng.normal(batch, seq_len, n_head * head_dim, dtype=dtype)
    split, right = (
        partial(problem.split_heads, n_head=n_head),
        partial(oracles.split, n_head=n_head),
    )
    # Numbers are only moved, so the gradients are the numbers of `upstream`, moved back.
    if name == "split_heads":
        call, code, back = f"split_heads(x, {n_head})", split, oracles.merge
    else:
        x = x.view(batch, n_head, seq_len, head_dim)
        call, code, right, back = "merge_heads(x)", problem.merge_heads, oracles.merge, right
    return robust.Call(call, code, {"x": x}, right, slopes=lambda upstream: {"x": back(upstream)})


@pytest.mark.points(0.75)
@pytest.mark.parametrize("name", ["split_heads", "merge_heads"])
@robust.parts(*robust.COMMON)
def test_heads_in_use(problem, rng, name, part):
    """split_heads and merge_heads keep the rules that hold in every problem"""
    make = partial(heads_call, problem, rng, name)
    robust.check_part(part, rng, make, sizes="batch seq_len n_head head_dim")


# What MultiHeadAttention is made of


def check_parts(module, call, n_embd, n_head, *, dropout=0.0, bias=True):
    """Require GPT-2's layers with their names and sizes, and no other parameters."""
    sizes = {"n_embd": n_embd, "n_head": n_head, "head_dim": n_embd // n_head}
    for name, size in sizes.items():
        found = getattr(module, name, None)
        fits = type(found) is int and found == size
        checks.require(fits, f"{call} has {name} = {found!r}; expected {size}, an int.")
    checks.check_layer(module, "c_attn", n_embd, 3 * n_embd, bias=bias)
    checks.check_layer(module, "c_proj", n_embd, n_embd, bias=bias)
    for name in ("attn_dropout", "resid_dropout"):
        child = getattr(module, name, None)
        fits = isinstance(child, nn.Dropout) and child.p == dropout
        checks.require(fits, f"`{name}` of {call} is {child}; expected nn.Dropout({dropout}).")
    found, number = parameters(module), len(list(module.parameters()))
    expected = [name for name in GPT2_NAMES if bias or name.endswith("weight")]
    fits = found.keys() >= {*expected} and number == len(expected)
    checks.require(fits, f"The parameters are {sorted(found)}; expected {expected}.")


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
    """A number of heads below 1, or one that does not divide n_embd, raises ValueError"""
    make = partial(problem.MultiHeadAttention, 12, n_head)
    example.check_refused(named(12, n_head), make, "no such heads can be made")


# What MultiHeadAttention computes


@pytest.mark.points(0.25)
def test_one_token(problem, rng):
    """A single token gets c_proj of its value, which is the last third of what c_attn gives"""
    weights, x = telltale.plain_weights(6), rng.normal(1, 1, 6)
    weights["c_attn.weight"][:] = 0
    weights["c_attn.bias"] = torch.arange(1.0, 19.0)
    call = (
        f"{named(6, 2)}(x) with one token, for which c_attn gives 1 to 6 (query), 7 to 12 (key) "
        "and 13 to 18 (value), and which c_proj does not change"
    )
    expected, sizes = oracles.output(x, weights, 2), {"head_dim": 3, "n_embd": 6, "n_head": 2}
    checks.check(make_attention(problem, weights, 2)(x.clone()), expected, call, sizes=sizes)


@pytest.mark.points(0.5)
def test_weights(problem, rng):
    """In every head the weights are the softmax, over the keys, of scores divided by √head_dim"""
    weights, x = gpt2_weights(rng, 10), torch.eye(10)[None, :3]
    # The values of each head are the identity, and c_proj changes nothing.
    weights["c_attn.weight"][20:] = torch.eye(5, 10).repeat(2, 1)
    weights["c_attn.bias"][20:] = 0
    weights |= {name: w for name, w in telltale.plain_weights(10).items() if "c_proj" in name}
    call = f"{named(10, 2)}(x), where each head's values are the identity, so it outputs weights"
    output = checks.check_form(make_attention(problem, weights, 2)(x.clone()), x, call)
    shown = [
        each.reshape(1, 3, 2, 5).transpose(1, 2) for each in (output, oracles.output(x, weights, 2))
    ]
    sizes = {"head_dim": 5, "n_embd": 10, "T": 3, "n_head": 2}
    checks.check(*shown, f"{call}, seen as (batch, head, query, key)", sizes=sizes)


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


def check_attention(problem, weights, x, n_head, what="", near=None, **options):
    """Compare the output of the student's module of these weights with the definition."""
    module = make_attention(problem, weights, n_head, **options)
    call = f"{named(x.shape[-1], n_head, **options)}(x) with x of shape {tuple(x.shape)}{what}"
    expected = oracles.output(x, weights, n_head, options.get("causal", False))
    checks.check(module(x.clone()), expected, call, **(near or {}))


@pytest.mark.points(0.75)
@FORWARD_SIZES
def test_attention_by_hand(problem, rng, shape, n_head, bias):
    """MultiHeadAttention follows the definition in every head"""
    weights = gpt2_weights(rng, shape[-1], bias=bias)
    check_attention(problem, weights, rng.normal(*shape), n_head, bias=bias)


@pytest.mark.points(1.75)
@FORWARD_SIZES
def test_causal_attention_by_hand(problem, rng, shape, n_head, bias):
    """With causal=True a token sees itself and all earlier ones"""
    weights = gpt2_weights(rng, shape[-1], bias=bias)
    check_attention(problem, weights, rng.normal(*shape), n_head, causal=True, bias=bias)


@pytest.mark.points(0.75)
def test_future_is_hidden(problem, rng):
    """With causal=True a change of later tokens leaves earlier outputs alone, in both modes"""
    weights, x = gpt2_weights(rng, 6), rng.normal(2, 5, 6)
    module = make_attention(problem, weights, 2, causal=True)
    for mode in ("train", "eval"):
        call = f"{named(6, 2, causal=True)}.{mode}()(x)"
        module.train(mode == "train")
        before = checks.check_form(module(x.clone()), x, call)
        for n_kept in range(1, 5):
            changed = torch.cat([x[:, :n_kept], rng.normal(2, 5 - n_kept, 6) * 10], dim=1)
            after = checks.check_form(module(changed), x, call)
            seen = f"{call}, its first {n_kept} of 5 tokens, when all later tokens are changed"
            checks.check_same(after[:, :n_kept], before[:, :n_kept], seen)


@pytest.mark.points(1.25)
def test_worked_example(problem):
    """One causal head gives the output of the worked example"""
    # Token t is the t-th unit vector, so column t of c_attn's weight is its query, key and value.
    weights = telltale.plain_weights(8)
    weights["c_attn.weight"][:, :4] = torch.cat([example.Q, example.K, example.V], dim=1).T
    x = torch.eye(8)[None, :4]
    module = make_attention(problem, weights, 1, causal=True)
    call = f"{named(8, 1, causal=True)}(x) with the queries, keys and values of the worked example"
    checks.check(module(x.clone()), attention.CAUSAL_OUTPUT[None], call)


@pytest.mark.points(0.25)
def test_no_dropout_in_evaluation(problem, rng):
    """After eval(), and with dropout=0.0 also in training, nothing is dropped"""
    weights, x = gpt2_weights(rng, 6), rng.normal(2, 4, 6)
    expected = oracles.output(x, weights, 2, True)
    module = make_attention(problem, weights, 2, dropout=0.0, causal=True).train()
    checks.check(module(x.clone()), expected, f"{named(6, 2, dropout=0.0, causal=True)}.train()(x)")
    module = make_attention(problem, weights, 2, dropout=0.6, causal=True).eval()
    checks.check(module(x.clone()), expected, f"{named(6, 2, dropout=0.6, causal=True)}.eval()(x)")


LOW, HIGH = "all scores but the last far below 0", "one future score far above the others"
APART, LARGE = "rows of scores thousands apart", "values of thousands"
EXTREMES = pytest.mark.parametrize(
    ("case", "causal"),
    [(LOW, True), (HIGH, True), (APART, True), (APART, False), (LARGE, True), (LARGE, False)],
)


def extreme(rng, case, n_embd, n_head):
    """Return weights, tokens and how near the output must be. Entry 0 of each head makes scores."""
    weights, x = telltale.plain_weights(n_embd), rng.normal(2, 5, n_embd)
    query = torch.arange(0, n_embd, n_embd // n_head)
    weight, bias, key, value = (
        weights["c_attn.weight"],
        weights["c_attn.bias"],
        n_embd + query,
        -n_embd,
    )
    if case == LOW:  # to the last score it is farther than from float32's lowest number to 0
        bias[query], bias[key], weight[key, 0] = 1.8e19, -1.7e19, 1e17
        x[:, -1, 0] = 340
        return weights, x, {}
    if case == LARGE:
        weight[value:] *= 5000
        return weights, rng.normal(1, 100, n_embd), {"atol": 0.1}
    weight[value, 0] = 0  # else the sum of large values decides, rounded
    if case == HIGH:
        bias[query], weight[key, 0] = 1, 1
        x[:, -1, 0] = 1e30
        return weights, x, {}
    bias[key], weight[query, 0] = 1, 1
    x[:, :, 0] = torch.tensor([4000.0, -4000, 0, 2000, -2000])
    return weights, x, {"rtol": 1e-2, "atol": 1e-2}  # such scores lie 0.0002 apart in float32


@pytest.mark.points(1)
@EXTREMES
def test_extreme_scores(problem, rng, case, causal):
    """Scores and values may have any size, and those of the future have the weight 0"""
    weights, x, near = extreme(rng, case, 6, 2)
    check_attention(problem, weights, x, 2, f", {case}", near, causal=causal)


def attention_call(
    problem, rng, *, batch=2, seq_len=3, n_head=2, head_dim=2, causal=True, dtype=torch.float32
):
    """A call of a MultiHeadAttention in evaluation."""
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
    """MultiHeadAttention keeps the rules that hold in every problem"""
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
        # Where Python loops over pairs of positions, that would take minutes.
        slow = example.loops_over_pairs(lambda length: module(torch.zeros(1, length, 2)))
        if slow and skip():
            return
        with torch.no_grad():  # a loop's graph would take gigabytes
            output = checks.check_form(module(x.clone()), x, call)[:, places]
        expected = oracles.output(x, weights, 1, causal, places)
        checks.check(output, expected, f"{call}, at the positions {places}")


# Dropout


def readable(problem, scores, dropout, causal=False):
    """A telltale's module in training and its sequence, when it is right in evaluation.

    Otherwise its output in training does not show the dropped entries.
    """
    make = partial(make_attention, problem, dropout=dropout, causal=causal)
    module, sequence = telltale.telltale(make, scores)
    layer = named(sequence.shape[-1], len(scores), dropout=dropout, causal=causal)
    expected = judges.telltale_output(scores, causal)
    checks.check(module.eval()(sequence[None].clone()), expected, f"{layer}.eval()(x)")
    return module.train(), sequence


def check_dropout(problem, scores, dropout, causal=False, batch=320):
    """Require that weights and output entries are dropped, as nn.Dropout does it."""
    module, sequence = readable(problem, scores, dropout, causal)
    x = sequence.repeat(batch, 1, 1)
    call = f"{named(x.shape[-1], len(scores), dropout=dropout, causal=causal)}(x) in training"
    torch.default_generator.manual_seed(3)
    output = checks.check_form(module(x.clone()), x, call)
    checks.check_that(output, judges.drops_weights_and_entries, call, scores, dropout, causal)


@pytest.mark.points(1)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_dropout_in_training(problem, rng, causal):
    """In training, single weights and output entries are dropped, and the rest is scaled up"""
    check_dropout(problem, rng.normal(2, 3, 3), 0.25, causal)


@pytest.mark.points(0.25)
def test_dropout_is_drawn_anew(problem, rng):
    """In training each call drops different entries; torch.manual_seed decides which"""
    scores, batch, dropout = rng.normal(2, 3, 3), 8, 0.25
    module, sequence = readable(problem, scores, dropout)
    x = sequence.repeat(batch, 1, 1)
    call = f"{named(x.shape[-1], 2, dropout=dropout)}(x) in training"

    def seeded(seeds):
        calls = answers(module, [(x.clone(),) for _ in seeds], seeds.values())
        return dict(zip(seeds, calls, strict=True))

    outputs = seeded({"first": 1, "again": 1, "other": 2}) | {"next": module(x.clone())}
    outputs |= seeded({seed: seed for seed in range(3, 13)})
    outputs = {name: checks.check_form(output, x, call) for name, output in outputs.items()}
    checks.check_that(outputs, judges.drawn_anew, call, scores, dropout)


# Its arguments


@pytest.mark.points(0.25)
def test_defaults(problem, rng):
    """MultiHeadAttention() has GPT-2's width and heads, no dropout, biases, and is not causal"""
    check_parts(problem.MultiHeadAttention(), "MultiHeadAttention()", 768, 12)
    weights, x = gpt2_weights(rng, 6), rng.normal(1, 3, 6)
    module = example.holding(problem.MultiHeadAttention(6, 2), weights).eval()
    checks.check(module(x.clone()), oracles.output(x, weights, 2), f"{named(6, 2)}.eval()(x)")


@pytest.mark.points(0.25)
def test_names_and_positions(problem, rng):
    """All arguments can be given by name or by position, in the order of the docstrings"""
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
        actual = example.holding(module, weights).eval()(x=x.clone())
        checks.check(actual, oracles.output(x, weights, 2, True), f"{call}.eval()(x=x)")


def check_gradients_in_training(problem, rng, n_embd, n_head, dropout, causal):
    """Compare the gradient with slopes while dropout drops the same again and again."""
    # In float64: in float32 the student's own outputs don't show a small step.
    weights = gpt2_weights(rng, n_embd, dtype=torch.float64)
    x = rng.normal(2, 4, n_embd, dtype=torch.float64)
    module = make_attention(problem, weights, n_head, dropout=dropout, causal=causal).train()
    call = f"{named(n_embd, n_head, dropout=dropout, causal=causal)}(x) in training"
    example.check_gradients_with_dropout(module, weights, x, call, rng)


@pytest.mark.points(0.25)
def test_gradients_in_training(problem, rng):
    """With dropout in training, gradients are those of the kept entries"""
    check_gradients_in_training(problem, rng, 4, 2, 0.3, causal=False)


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_attention_is_your_own(problem, rng):
    """MultiHeadAttention is written without PyTorch's own attention functions"""
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
    """The reference's MultiHeadAttention, holding these weights in their dtype, in evaluation."""
    options = {"bias": "c_proj.bias" in weights} | options
    n_embd = len(weights["c_proj.weight"])
    return modules.made(weights, solution.MultiHeadAttention, n_embd, n_head, **options).eval()


def both(problem, solution, weights, n_head, **options):
    """The student's module and the reference's, with the same weights."""
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
    """Weights under GPT-2's names can be loaded, and the attributes fit any size"""
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
    """Scores and values may have any size in layers of other sizes, too"""
    weights, x, near = extreme(rng, case, 15, 5)
    check_attention(problem, weights, x, 5, f", {case}", near, causal=causal)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_hidden_precision(problem, solution, rng, causal):
    """In float64 all digits of outputs and gradients are right"""
    weights = gpt2_weights(rng, 15, dtype=torch.float64)
    student, reference = both(problem, solution, weights, 5, causal=causal)
    x = rng.normal(3, 6, 15, dtype=torch.float64)
    x[1:] *= 4  # larger tokens make weights of less than a millionth
    case = (f"{named(15, 5, causal=causal)}(x) in float64", {"x": x.requires_grad_()})
    example.check_like(reference, student, rng, [case], all_digits=True)


@pytest.mark.points(0.5)
@robust.parts("nothing changed", "second call")
def test_hidden_in_use(problem, rng, part):
    """MultiHeadAttention changes nothing and remembers nothing, in other sizes too"""
    sizes = {"seq_len": 5, "n_head": 3, "head_dim": 4}
    make = partial(attention_call, problem, rng, causal=False, **sizes)
    robust.check_part(part, rng, make, other={"seq_len": 8})


@pytest.mark.points(2)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize(("n_head", "seq_len", "dropout"), [(2, 3, 0.4), (4, 2, 0.2), (1, 1, 0.3)])
def test_hidden_dropout(problem, rng, n_head, seq_len, dropout, causal):
    """In training single weights and entries are dropped, for other sizes and rates too"""
    check_dropout(problem, rng.normal(n_head, seq_len, seq_len), dropout, causal, batch=400)


@pytest.mark.points(0.5)
def test_hidden_dropout_modes(problem, solution, rng):
    """train() and eval() switch dropout on and off as often as one likes"""
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
    """With dropout in training, gradients are those of the kept entries, for other sizes too"""
    check_gradients_in_training(problem, rng, 6, 3, 0.2, causal=True)
