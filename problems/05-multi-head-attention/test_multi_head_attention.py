"""Tests of problem 05. Run them with `uv run pytest` in this folder."""

import functools
import math
import operator
import time

import pytest
import torch
from torch import nn

from grader.testing.compare import (
    check,
    check_form,
    check_gradients,
    check_layer,
    gradients,
    parameters,
    require,
    set_weights,
)
from grader.testing.diagnose import attempt

# Nothing in problem.py may call these, under any name.
FORBIDDEN = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")

GPT2_NAMES = ["c_attn.bias", "c_attn.weight", "c_proj.bias", "c_proj.weight"]


# The definition, made runnable: one number at a time.


def split_by_hand(x, n_head):
    """Head h holds entries h * head_dim to (h + 1) * head_dim of every token."""
    batch, seq_len, n_embd = x.shape
    head_dim = n_embd // n_head
    heads = torch.empty(batch, n_head, seq_len, head_dim, dtype=x.dtype)
    for h in range(n_head):
        for c in range(head_dim):
            heads[:, h, :, c] = x[:, :, h * head_dim + c]
    return heads


def merge_by_hand(x):
    """Entry c of head h becomes entry h * head_dim + c of the token."""
    batch, n_head, seq_len, head_dim = x.shape
    merged = torch.empty(batch, seq_len, n_head * head_dim, dtype=x.dtype)
    for h in range(n_head):
        for c in range(head_dim):
            merged[:, :, h * head_dim + c] = x[:, h, :, c]
    return merged


def dot(a, b):
    """The dot product of two lists."""
    return sum(map(operator.mul, a, b))


def linear_by_hand(tokens, weights, name):
    """What nn.Linear does with each token: a dot product and a bias for every output."""
    rows = weights[f"{name}.weight"].tolist()
    biases = weights[f"{name}.bias"].tolist() if f"{name}.bias" in weights else [0.0] * len(rows)
    return [[dot(row, t) + b for row, b in zip(rows, biases, strict=True)] for t in tokens]


def attend_by_hand(query, keys, values):
    """What one query gathers in one head: the values, weighted by the softmax of its scores."""
    scores = [dot(query, key) / math.sqrt(len(query)) for key in keys]
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    total = sum(powers)
    weights = [power / total for power in powers]
    return [dot(weights, column) for column in zip(*values, strict=True)]


def sequence_by_hand(tokens, weights, n_head, causal, positions):
    """Multi-head attention of one sequence; the rows of the output at `positions`."""
    n_embd = len(tokens[0])
    head_dim = n_embd // n_head
    projected = linear_by_hand(tokens, weights, "c_attn")
    gathered = []
    for i in positions:
        seen = projected[: i + 1] if causal else projected
        merged = []
        for start in range(0, n_embd, head_dim):
            query = projected[i][start : start + head_dim]
            keys = [row[n_embd + start :][:head_dim] for row in seen]
            values = [row[2 * n_embd + start :][:head_dim] for row in seen]
            merged += attend_by_hand(query, keys, values)
        gathered.append(merged)
    return linear_by_hand(gathered, weights, "c_proj")


def attention_by_hand(x, weights, n_head, causal, positions=None):
    """Multi-head attention of x (B, T, C), without dropout; of all positions if not told."""
    positions = range(x.shape[1]) if positions is None else positions
    rows = [sequence_by_hand(t, weights, n_head, causal, positions) for t in x.tolist()]
    return torch.tensor(rows, dtype=torch.float64).to(x.dtype)


# Layers whose weights are known.


def random_weights(rng, n_embd, *, bias=True):
    """Weights under GPT-2's names, for which the scores are neither all alike nor far apart."""
    weights = {
        "c_attn.weight": rng.normal(3 * n_embd, n_embd) * 1.2 / math.sqrt(n_embd),
        "c_proj.weight": rng.normal(n_embd, n_embd) / math.sqrt(n_embd),
    }
    biases = {"c_attn.bias": rng.normal(3 * n_embd) / 2, "c_proj.bias": rng.normal(n_embd)}
    return weights | biases if bias else weights


def plain_weights(n_embd):
    """Weights to build on: no queries and no keys, each token its own value, nothing mixed."""
    eye, zeros = torch.eye(n_embd, dtype=torch.float64), torch.zeros(n_embd, dtype=torch.float64)
    return {
        "c_attn.weight": torch.cat([0 * eye, 0 * eye, eye]),
        "c_attn.bias": zeros.repeat(3),
        "c_proj.weight": eye,
        "c_proj.bias": zeros,
    }


def layer(problem, weights, n_head, *, dtype=torch.float64, **options):
    """A MultiHeadAttention of the student's that holds `weights`."""
    n_embd = weights["c_proj.weight"].shape[0]
    options = {"dropout": 0.0, "causal": False, "bias": "c_proj.bias" in weights} | options
    module = problem.MultiHeadAttention(n_embd=n_embd, n_head=n_head, **options).to(dtype)
    set_weights(module, weights)
    return module


def named(n_embd, n_head, **options):
    """How a student would write the making of this layer."""
    extra = "".join(f", {name}={value}" for name, value in options.items())
    return f"MultiHeadAttention({n_embd}, {n_head}{extra})"


# split_heads and merge_heads


@pytest.mark.points(1)
def test_heads_in_numbers(problem):
    """split_heads cuts each token into slices, one per head, and merge_heads joins them again"""
    x = torch.tensor([[[1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60]]], dtype=torch.float64)
    in_3 = [[[1, 2], [10, 20]], [[3, 4], [30, 40]], [[5, 6], [50, 60]]]
    in_2 = [[[1, 2, 3], [10, 20, 30]], [[4, 5, 6], [40, 50, 60]]]
    for n_head, heads in [(3, in_3), (2, in_2)]:
        heads = torch.tensor([heads], dtype=torch.float64)
        call = f"split_heads(x, {n_head}) with x = {x.int().tolist()}"
        check(problem.split_heads(x, n_head), heads, call)
        call = f"merge_heads(y) with y = {heads.int().tolist()}"
        check(problem.merge_heads(heads), x, call)


SIZES = [(3, 4, 6, 2), (2, 5, 6, 3), (1, 3, 4, 4), (2, 4, 3, 1), (4, 1, 6, 2), (1, 1, 2, 1)]
"""Batch, sequence length, embedding width, number of heads."""


@pytest.mark.points(1)
@pytest.mark.parametrize(("batch", "seq_len", "n_embd", "n_head"), SIZES)
def test_split_heads(problem, rng, batch, seq_len, n_embd, n_head):
    """split_heads turns (B, T, C) into (B, n_head, T, C // n_head), each head with its own slice"""
    x = rng.normal(batch, seq_len, n_embd)
    call = f"split_heads(x, {n_head}) with x of shape {tuple(x.shape)}"
    check(problem.split_heads(x, n_head), split_by_hand(x, n_head), call)


@pytest.mark.points(1)
@pytest.mark.parametrize(("batch", "seq_len", "n_embd", "n_head"), SIZES)
def test_merge_heads(problem, rng, batch, seq_len, n_embd, n_head):
    """merge_heads is the inverse of split_heads"""
    heads = rng.normal(batch, n_head, seq_len, n_embd // n_head)
    call = f"merge_heads(x) with x of shape {tuple(heads.shape)}"
    check(problem.merge_heads(heads), merge_by_hand(heads), call)
    x = rng.normal(batch, seq_len, n_embd)
    call = f"merge_heads(split_heads(x, {n_head})) with x of shape {tuple(x.shape)}"
    check(problem.merge_heads(problem.split_heads(x, n_head)), x, call)


# What MultiHeadAttention is made of


@pytest.mark.points(1)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_layers(problem, dropout, bias):
    """MultiHeadAttention has GPT-2's layers, with their names and sizes, and no other parameters"""
    module = problem.MultiHeadAttention(12, 3, dropout, False, bias)
    for name, size in [("n_embd", 12), ("n_head", 3), ("head_dim", 4)]:
        require(hasattr(module, name), f"{named(12, 3)} has no {name}; it should be {size}.")
        found = getattr(module, name)
        fits = type(found) is int and found == size
        kind = type(found).__name__
        require(fits, f"{named(12, 3)} has {name} = {found} ({kind}); expected {size} (int).")
    check_layer(module, "c_attn", 12, 36, bias=bias)
    check_layer(module, "c_proj", 12, 12, bias=bias)
    for name in ("attn_dropout", "resid_dropout"):
        wanted = f"`{name}` of {named(12, 3, dropout=dropout)} should be nn.Dropout({dropout})"
        require(hasattr(module, name), f"{wanted}; there is none.")
        child = getattr(module, name)
        kind = type(child).__name__
        require(isinstance(child, nn.Dropout), f"{wanted}; it is of type {kind}.")
        require(child.p == dropout, f"{wanted}; it is nn.Dropout({child.p}).")
    found, number = parameters(module), len(list(module.parameters()))
    expected = [name for name in GPT2_NAMES if bias or name.endswith("weight")]
    fits = found.keys() >= set(expected) and number == len(expected)
    require(fits, f"The parameters are {sorted(found)}; expected {expected}.")


@pytest.mark.points(0.5)
def test_defaults(problem):
    """MultiHeadAttention() has GPT-2's width and heads, no dropout, a bias, and sees the future"""
    module = problem.MultiHeadAttention()
    sizes = (module.n_embd, module.n_head, module.head_dim)
    require(
        sizes == (768, 12, 64),
        f"MultiHeadAttention() has n_embd, n_head, head_dim = {sizes}; expected (768, 12, 64).",
    )
    check_layer(module, "c_attn", 768, 3 * 768)
    check_layer(module, "c_proj", 768, 768)
    rates = (module.attn_dropout.p, module.resid_dropout.p)
    require(rates == (0, 0), f"MultiHeadAttention() has the dropout rates {rates}; expected 0.")

    weights = plain_weights(4)
    x = torch.tensor([[[4.0, 2, 0, -2], [0, 6, 4, 0]]], dtype=torch.float64)
    module = problem.MultiHeadAttention(4, 2).double()
    set_weights(module, weights)
    call = f"{named(4, 2)}(x), without queries and keys: every token sees the mean of all"
    check(module(x.clone()), x.mean(1, keepdim=True).expand_as(x), call)


def refuse(problem, n_embd, n_head):
    """Require a ValueError for this number of heads."""
    call, make = named(n_embd, n_head), problem.MultiHeadAttention
    try:
        make(n_embd, n_head)
    except (ValueError, NotImplementedError) as exception:
        if isinstance(exception, NotImplementedError):
            raise
        return
    except Exception as exception:
        found = f"raised {type(exception).__name__}"
    else:
        found = "was accepted"
    require(False, f"{call} {found}; it should raise ValueError, as no such heads can be made.")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("n_head", [0, -1, -4, 5, 8, 24])
def test_impossible_heads_are_refused(problem, n_head):
    """A number of heads below 1, or one that does not divide n_embd, raises ValueError"""
    refuse(problem, 12, n_head)


# What MultiHeadAttention computes


def numbers(table):
    """A table of numbers as a tensor."""
    rows = [[float(number) for number in row.split()] for row in table.strip().splitlines()]
    return torch.tensor(rows, dtype=torch.float64)


# Queries, keys, values and output of the worked example.
Q = numbers("""
    1.16797418 -0.73724956 0.75041732 -0.1220419 1.70315355 0.31347885 0.34485802 0.4460984
    3.30107262 0.52084263 -0.30178335 1.6757843 -0.5155369 -2.57282086 0.7492196 -0.1116739
    1.79346332 1.43356091 1.04335097 -0.17879843 0.64886601 -1.36614847 0.23380491 0.87536806
    1.47103375 -1.58489204 -0.45911092 0.28391595 0.21250504 -1.61590866 -1.29484902 0.00475083
""")
K = numbers("""
    -0.27718816 -1.65065268 0.65895024 -0.30877976 0.08718337 -1.25869869 -0.189555 0.19835477
    0.34020432 0.52734301 0.70054018 0.02666352 -0.47575991 0.27451574 0.31178952 -0.80116187
    -0.32764932 -0.14549352 -0.40258405 0.75537362 1.05953459 -1.34530308 1.99241804 0.17674986
    -1.40543092 0.43389184 -0.07028518 0.10003431 1.26343057 -2.0707861 0.51659185 -1.03069964
""")
V = numbers("""
    -1.20455614 -0.78141984 -0.60550966 -0.49607676 0.05358656 0.31648808 1.97222775 0.97455048
    -0.22988732 -2.3585375 0.49206019 -0.74539263 -0.530485 -0.23619713 0.80175571 0.96790588
    -1.20769139 -1.33242785 -1.59215534 2.60984511 0.33729297 0.46552584 1.51418349 0.72913429
    0.5936924 -0.6305729 -0.95026899 0.87634056 -1.56283632 0.3099347 -0.36928654 1.2784266
""")
OUTPUT = numbers("""
    -1.20455614 -0.78141984 -0.60550966 -0.49607676 0.05358656 0.31648808 1.97222775 0.97455048
    -0.66957881 -1.64706996 -0.00307428 -0.63292153 -0.2669993 0.0131296 1.32977774 0.97090339
    -0.89506767 -1.53613058 -0.70591991 0.84266061 -0.00318276 0.20823676 1.38968769 0.86036549
    -0.84228483 -0.96535234 -0.71058386 0.14229459 -0.20809817 0.29146427 1.44269616 0.98682583
""")


@pytest.mark.points(0.5)
def test_worked_example(problem):
    """One causal head gives the output of the worked example"""
    # Token t is the t-th unit vector, so column t of c_attn's weight is its query, key and value.
    weights = plain_weights(8)
    weights["c_attn.weight"][:, :4] = torch.cat([Q, K, V], dim=1).T
    x = torch.eye(8, dtype=torch.float64)[None, :4]
    module = layer(problem, weights, 1, causal=True)
    call = f"{named(8, 1, causal=True)}(x) with the queries, keys and values of the worked example"
    check(module(x.clone()), OUTPUT[None], call, atol=2e-7, sizes={"head_dim": 8})


FORWARD_SIZES = [
    (2, 4, 6, 2),
    (3, 5, 6, 3),
    (2, 3, 5, 1),
    (1, 5, 4, 4),
    (1, 1, 6, 2),
    (2, 7, 10, 2),
]
"""Batch, sequence length, embedding width, number of heads."""


@pytest.mark.points(2)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize(("batch", "seq_len", "n_embd", "n_head"), FORWARD_SIZES)
def test_attention_by_hand(problem, rng, batch, seq_len, n_embd, n_head, causal):
    """MultiHeadAttention does in every head what the definition says, causal or not"""
    weights, x = random_weights(rng, n_embd), rng.normal(batch, seq_len, n_embd)
    module = layer(problem, weights, n_head, causal=causal)
    call = f"{named(n_embd, n_head, causal=causal)}(x) with x of shape {tuple(x.shape)}"
    check(module(x.clone()), attention_by_hand(x, weights, n_head, causal), call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_attention_without_bias(problem, rng, causal):
    """With bias=False the attention is the same, without the biases"""
    weights, x = random_weights(rng, 6, bias=False), rng.normal(2, 4, 6)
    module = layer(problem, weights, 3, causal=causal)
    call = f"{named(6, 3, causal=causal, bias=False)}(x) with x of shape (2, 4, 6)"
    check(module(x.clone()), attention_by_hand(x, weights, 3, causal), call)


@pytest.mark.points(0.5)
def test_future_is_hidden(problem, rng):
    """With causal=True a change of later tokens leaves the earlier outputs as they were"""
    weights, x = random_weights(rng, 6), rng.normal(2, 5, 6)
    module = layer(problem, weights, 2, causal=True)
    before = check_form(module(x.clone()), x, f"{named(6, 2, causal=True)}(x)")
    for n_kept in range(1, 5):
        changed = torch.cat([x[:, :n_kept], rng.normal(2, 5 - n_kept, 6) * 10], dim=1)
        after = check_form(module(changed), x, f"{named(6, 2, causal=True)}(x)")
        call = f"the outputs at the first {n_kept} of 5 tokens, when all later tokens are changed"
        check(after[:, :n_kept], before[:, :n_kept], call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("case", ["all scores far below 0", "one future score far above"])
def test_future_is_hidden_at_any_score(problem, rng, case):
    """With causal=True the future has the weight 0, however large or small the scores are"""
    # Entry 0 of every head is what queries and keys are made of; the other entries are 0.
    weights, x = plain_weights(6), rng.normal(2, 5, 6)
    starts = torch.tensor([0, 3])
    if case == "all scores far below 0":
        weights["c_attn.bias"][starts] = 1e17
        weights["c_attn.bias"][6 + starts] = -1e18
    else:
        weights["c_attn.bias"][starts] = 1
        weights["c_attn.weight"][6 + starts, 0] = 1
        weights["c_attn.weight"][12, 0] = 0
        x[:, -1, 0] = 1e30
    module = layer(problem, weights, 2, causal=True)
    call = f"{named(6, 2, causal=True)}(x) with {case}"
    check(module(x.clone()), attention_by_hand(x, weights, 2, True), call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_large_scores(problem, rng, causal):
    """Scores of thousands, above or below 0, give no inf and no NaN"""
    # Entry 0 of each key is 1, so entry 0 of a query moves all scores of its row alike.
    weights, x = random_weights(rng, 6), rng.normal(2, 5, 6)
    x[:, :, 5] = torch.tensor([4000.0, -4000, 0, 2000, -2000])
    weights["c_attn.weight"][:, 5] = 0
    weights["c_attn.weight"][[0, 3], 5] = torch.tensor([1.0, -1], dtype=torch.float64)
    weights["c_attn.weight"][[6, 9]] = 0
    weights["c_attn.bias"][[6, 9]] = 1
    module = layer(problem, weights, 2, causal=causal)
    call = f"{named(6, 2, causal=causal)}(x) with rows of scores near 2000, near -2000 and near 0"
    check(module(x.clone()), attention_by_hand(x, weights, 2, causal), call)


LONG = 1030
"""A sequence longer than GPT-2's 1024 positions."""


def seconds(module, n_embd, seq_len, dtype):
    """How long the layer takes for one sequence."""
    x = torch.zeros(1, seq_len, n_embd, dtype=dtype)
    start = time.perf_counter()
    module(x)
    return time.perf_counter() - start


@torch.no_grad()
def quick(module, n_embd, seq_len, dtype=torch.float64):
    """Whether the layer would be done with `seq_len` positions in about two seconds.

    Python loops over pairs of positions are right, but may take minutes for long sequences. What
    they leave behind for gradients would take gigabytes, so long ones are asked for without.
    """
    limit = 2 * (100 / seq_len) ** 2
    for _ in range(5):
        longer = seconds(module, n_embd, 100, dtype) - seconds(module, n_embd, 10, dtype)
        if longer < limit or longer > 10 * limit:
            break
    return longer < limit


@pytest.mark.points(0.5)
def test_sequences_of_any_length(problem, rng):
    """One and the same causal layer works for short sequences and for long ones"""
    weights = random_weights(rng, 3)
    module = layer(problem, weights, 1, causal=True)
    for seq_len in (3, 7, 2, 1):
        x = rng.normal(1, seq_len, 3)
        call = f"{named(3, 1, causal=True)}(x) with x of shape {tuple(x.shape)}"
        check(module(x.clone()), attention_by_hand(x, weights, 1, True), call)
    if quick(module, 3, LONG):
        x, positions = rng.normal(1, LONG, 3), [0, 1, 700, LONG - 1]
        call = f"{named(3, 1, causal=True)}(x) with x of shape {tuple(x.shape)}"
        with torch.no_grad():
            output = check_form(module(x.clone()), x, call)
        expected = attention_by_hand(x, weights, 1, True, positions)
        check(output[:, positions], expected, f"{call}, at the positions {positions}")


# Dropout


COPIES = 8
"""How many entries of `telltale`'s output show the same weight."""


def telltale(problem, scores, dropout, causal=False):
    """A layer, and a sequence for it, whose output shows which weights and entries were dropped.

    Token t is the t-th unit vector. In head h the score of query i and key j is scores[h, i, j].
    Value j is 1 at COPIES places of its own, so there the output of query i shows the weight of
    (i, j). c_proj adds 1 to everything.
    """
    n_head, seq_len, _ = scores.shape
    head_dim = COPIES * seq_len
    n_embd = n_head * head_dim
    q, k, v = torch.zeros(3, n_head, head_dim, n_embd, dtype=torch.float64)
    for t in range(seq_len):
        q[:, :seq_len, t] = scores[:, t] * math.sqrt(head_dim)
        k[:, t, t] = 1
        v[:, COPIES * t : COPIES * (t + 1), t] = 1
    weights = plain_weights(n_embd)
    weights["c_attn.weight"] = torch.cat([part.reshape(n_embd, n_embd) for part in (q, k, v)])
    weights["c_proj.bias"] += 1
    module = layer(problem, weights, n_head, dropout=dropout, causal=causal)
    return module, torch.eye(seq_len, n_embd, dtype=torch.float64)


def shown_weights(scores, causal):
    """The weights before dropout, in the order in which the output shows them: (T, n_head, T)."""
    future = torch.ones(scores.shape, dtype=torch.bool).triu(1)
    hidden = future if causal else torch.zeros_like(future)
    powers = torch.where(hidden, 0, torch.exp(scores))
    return (powers / powers.sum(-1, keepdim=True)).transpose(0, 1)


def read_dropped(entries, weights, dropout):
    """Which weights and which entries of a telltale's output were dropped.

    Args:
        entries: the output, seen as (B, T, n_head, T, COPIES).
        weights: the weights before dropout, (T, n_head, T).
        dropout: the rate.

    Returns:
        A bool tensor (B, T, n_head, T) for the weights, and one of the shape of `entries`.
    """
    # An entry is 0 where it was dropped itself. Otherwise it is 1 / (1 - dropout) if its weight was
    # dropped, and more if not. That all COPIES entries of a weight are 0 is very rare.
    halfway = (1 + weights / 2) / (1 - dropout)
    return entries.amax(-1) < halfway, entries == 0


def check_rate(dropped, dropout, what, where):
    """Require that `dropped` has about the rate `dropout`, for every weight or entry alike."""
    rate = dropped.double().mean().item()
    error = math.sqrt(dropout * (1 - dropout) / dropped.numel())
    require(
        abs(rate - dropout) < 7 * error,
        f"In training with dropout={dropout}, {rate:.0%} of {what} were dropped. {where}",
    )
    rates = dropped.double().mean(0)
    require(
        rates.min() > 0.25 * dropout and rates.max() < 2 * dropout,
        f"In training with dropout={dropout}, some of {what} were dropped in {rates.min():.0%} of "
        f"the sequences and some in {rates.max():.0%}. Each should have the same chance.",
    )


def check_independent(dropped, dropout, axes, what):
    """Require that neighbours along each axis agree no more often than chance has it."""
    expected = dropout**2 + (1 - dropout) ** 2
    for dim, axis in enumerate(axes):
        pairs = dropped.int().diff(dim=dim) == 0
        agree = pairs.double().mean().item()
        error = math.sqrt(expected * (1 - expected) / pairs.numel())
        require(
            abs(agree - expected) < 8 * error,
            f"In training with dropout={dropout}, neighbours along the {axis} axis shared their "
            f"fate for {agree:.0%} of {what}; by chance it would be {expected:.0%}. Each should be "
            "dropped by itself.",
        )


def check_dropout(problem, scores, dropout, causal=False, batch=320):
    """Require that weights and output entries are dropped, as nn.Dropout does it."""
    module, sequence = telltale(problem, scores, dropout, causal)
    n_head, seq_len, _ = scores.shape
    weights = shown_weights(scores, causal)
    x = sequence.repeat(batch, 1, 1)
    call = f"{named(x.shape[-1], n_head, dropout=dropout, causal=causal)}(x) in training"
    torch.default_generator.manual_seed(3)
    output = check_form(module(x.clone()), x, call)
    entries = output.reshape(batch, seq_len, n_head, seq_len, COPIES)
    weight_dropped, entry_dropped = read_dropped(entries, weights, dropout)

    check_rate(
        entry_dropped,
        dropout,
        "the entries of the output",
        "Is resid_dropout applied, last of all?",
    )
    visible = weight_dropped[:, weights > 0]
    check_rate(
        visible,
        dropout,
        "the attention weights",
        "Is attn_dropout applied, to the weights after the softmax?",
    )
    kept = torch.where(weight_dropped, 0, weights / (1 - dropout))[..., None]
    expected = torch.where(entry_dropped, 0, (kept + 1) / (1 - dropout))
    check(
        entries,
        expected,
        f"{call}, seen as (batch, query, head, key, {COPIES} copies of the weight, plus 1), where "
        "each dropout should grow what it keeps by 1/(1 - dropout) and change nothing else",
    )
    if not causal:
        axes = ("batch", "query", "head", "key")
        check_independent(weight_dropped, dropout, axes, "the attention weights")
    axes = ("batch", "position", "channel")
    check_independent(entry_dropped.flatten(2), dropout, axes, "the entries of the output")


@pytest.mark.points(1)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_dropout_in_training(problem, rng, causal):
    """In training, weights and output entries are dropped one by one, and the rest grows"""
    check_dropout(problem, rng.normal(2, 3, 3), 0.25, causal)


@pytest.mark.points(0.25)
def test_dropout_keeps_the_mean(problem, rng):
    """In training, the mean over many draws is the output without dropout"""
    weights, x, n_draws = random_weights(rng, 4), rng.normal(1, 2, 4), 600
    module = layer(problem, weights, 2, dropout=0.2)
    call = f"{named(4, 2, dropout=0.2)}(x) in training, with {n_draws} times the same sequence"
    torch.default_generator.manual_seed(6)
    outputs = check_form(module(x.repeat(n_draws, 1, 1)), x.expand(n_draws, -1, -1), call)
    expected = attention_by_hand(x, weights, 2, False)
    # How much of the output without dropout is in each draw: 1, on average.
    shares = (outputs * expected).sum((1, 2)) / (expected * expected).sum()
    mean, error = shares.mean().item(), shares.std().item() / math.sqrt(n_draws)
    require(
        abs(mean - 1) < 7 * error + 1e-9,
        f"{call}\nOn average the outputs are {mean:.2f} times the output without dropout; "
        "dropout should leave the average as it is.",
    )


@pytest.mark.points(0.5)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_no_dropout_in_evaluation(problem, rng, causal):
    """After eval(), and with dropout=0.0 also in training, nothing is dropped"""
    weights, x = random_weights(rng, 6), rng.normal(2, 4, 6)
    expected = attention_by_hand(x, weights, 2, causal)
    module = layer(problem, weights, 2, dropout=0.6, causal=causal).eval()
    check(module(x.clone()), expected, f"{named(6, 2, dropout=0.6, causal=causal)}.eval()(x)")
    module = layer(problem, weights, 2, dropout=0.0, causal=causal).train()
    check(module(x.clone()), expected, f"{named(6, 2, dropout=0.0, causal=causal)}.train()(x)")


@pytest.mark.points(0.25)
def test_dropout_is_drawn_anew(problem, rng):
    """In training each call drops others; torch.manual_seed decides which"""
    scores, batch, dropout = rng.normal(2, 3, 3), 8, 0.25
    module, sequence = telltale(problem, scores, dropout)
    weights, x = shown_weights(scores, causal=False), sequence.repeat(batch, 1, 1)
    call = f"{named(x.shape[-1], 2, dropout=dropout)}(x) in training"
    outputs, dropped = {}, {}
    seeds = {"first": 1, "again": 1, "other": 2, "next": None} | dict.fromkeys(range(10))
    for name, seed in seeds.items():
        if seed is not None:
            torch.default_generator.manual_seed(seed)
        outputs[name] = check_form(module(x.clone()), x, call)
        entries = outputs[name].reshape(batch, 3, 2, 3, COPIES)
        dropped[name] = read_dropped(entries, weights, dropout)
    for one, two, what in [
        ("other", "next", "Two calls"),
        ("first", "other", "A call after torch.manual_seed(1) and one after torch.manual_seed(2)"),
    ]:
        (weights_1, entries_1), (weights_2, entries_2) = dropped[one], dropped[two]
        shown = ~(entries_1.all(-1) | entries_2.all(-1))
        different = not torch.equal(weights_1[shown], weights_2[shown])
        require(different, f"{call}\n{what} dropped the same weights; each should draw anew.")
        different = not torch.equal(entries_1, entries_2)
        require(different, f"{call}\n{what} dropped the same of the output; each should draw anew.")
    for i, what in enumerate(["weights", "entries of the output"]):
        numbers = {int(both[i].sum()) for both in dropped.values()}
        message = f"{call}\n{len(dropped)} calls dropped {min(numbers)} {what} each. When each is "
        require(len(numbers) > 1, f"{message}dropped by itself, their number varies.")
    pairs = zip(dropped["again"], dropped["first"], strict=True)
    require(
        all(torch.equal(*pair) for pair in pairs),
        f"{call}\nAfter torch.manual_seed(1) it dropped others the second time than the first. Do "
        "all its random numbers come from torch's global generator?",
    )
    check(outputs["again"], outputs["first"], f"{call}, a second time after torch.manual_seed(1)")


# What holds for every function of the course


def check_slopes(module, tensors, upstream, output_of, call, rng):
    """Compare gradients with slopes along random directions, from two outputs a small step apart.

    Args:
        module: the student's layer.
        tensors: "x" and the weights that the layer holds.
        upstream: what each entry of the output counts.
        output_of: returns the output that belongs to x and weights.
        call: what was called.
        rng: draws the directions.
    """
    inputs = {"x": tensors["x"].clone().requires_grad_()} | parameters(module)
    found = gradients(module(inputs["x"]), inputs, upstream, call)
    for name, tensor in tensors.items():
        direction, sums = rng.normal(*tensor.shape), []
        for step in (1e-5, -1e-5):
            moved = tensors | {name: tensor + step * direction}
            sums.append((output_of(moved.pop("x"), moved) * upstream).sum())
        slope = (sums[0] - sums[1]) / 2e-5
        what = f"the gradient of {call} with respect to {name}, times a random direction"
        check((found[name] * direction).sum(), slope, what, rtol=1e-6, atol=1e-7)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_gradients_flow(problem, rng, causal):
    """Gradients reach the input, the weights and the biases"""
    weights, x, upstream = random_weights(rng, 4), rng.normal(2, 3, 4), rng.normal(2, 3, 4)
    module = layer(problem, weights, 2, causal=causal)

    def by_hand(x, weights):
        return attention_by_hand(x, weights, 2, causal)

    call = f"{named(4, 2, causal=causal)}(x)"
    check_slopes(module, {"x": x} | weights, upstream, by_hand, call, rng)


def check_gradients_in_training(problem, rng, n_embd, n_head, dropout, causal):
    """Compare gradients with slopes while dropout drops the same again and again."""
    weights, x, upstream = (
        random_weights(rng, n_embd),
        rng.normal(2, 4, n_embd),
        rng.normal(2, 4, n_embd),
    )
    module = layer(problem, weights, n_head, dropout=dropout, causal=causal)

    def again(x, weights):
        set_weights(module, weights)
        torch.default_generator.manual_seed(5)
        return module(x).detach()

    call = f"{named(n_embd, n_head, dropout=dropout, causal=causal)}(x) in training"
    torch.default_generator.manual_seed(5)
    check_slopes(module, {"x": x} | weights, upstream, again, call, rng)


@pytest.mark.points(0.25)
def test_gradients_in_training(problem, rng):
    """With dropout in training, gradients are those of what was kept"""
    check_gradients_in_training(problem, rng, 4, 2, 0.3, causal=False)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_dtype_is_kept(problem, rng, dtype):
    """Everything returns the dtype that came in, with its precision"""
    weights, x = random_weights(rng, 6), rng.normal(2, 5, 6, dtype=dtype)
    weights = {name: weight.to(dtype) for name, weight in weights.items()}
    name = str(dtype).removeprefix("torch.")
    heads = split_by_hand(x, 3)
    check(problem.split_heads(x, 3), heads, f"split_heads(x, 3) in {name}")
    check(problem.merge_heads(heads), x, f"merge_heads(x) in {name}")
    for causal in (False, True):
        module = layer(problem, weights, 2, dtype=dtype, causal=causal)
        call = f"{named(6, 2, causal=causal)}(x) in {name}"
        check(module(x.clone()), attention_by_hand(x, weights, 2, causal), call)


@pytest.mark.points(0.25)
def test_arguments_are_left_alone(problem, rng):
    """Nothing changes its argument, and a call leaves the weights as they are"""
    weights, x, heads = random_weights(rng, 6), rng.normal(2, 4, 6), rng.normal(2, 3, 4, 2)
    x_before, heads_before = x.clone(), heads.clone()
    module = layer(problem, weights, 2, dropout=0.2, causal=True)
    problem.split_heads(x, 2)
    problem.merge_heads(heads)
    module(x)
    require(torch.equal(x, x_before), "Your code changed its argument x.")
    require(torch.equal(heads, heads_before), "merge_heads changed its argument x.")
    for name, weight in weights.items():
        unchanged = torch.equal(parameters(module)[name], weight)
        require(unchanged, f"A call of {named(6, 2)} changed its own {name}.")


@pytest.mark.points(0.25)
def test_names_and_positions(problem, rng):
    """All arguments can be given by name or by position, in the order of the docstrings"""
    weights, x, heads = (
        random_weights(rng, 6, bias=False),
        rng.normal(2, 4, 6),
        rng.normal(2, 3, 4, 2),
    )
    call = "split_heads(n_head=3, x=x)"
    check(problem.split_heads(n_head=3, x=x), split_by_hand(x, 3), call)
    check(problem.merge_heads(x=heads), merge_by_hand(heads), "merge_heads(x=x)")
    expected = attention_by_hand(x, weights, 3, True)
    for module, making in [
        (problem.MultiHeadAttention(6, 3, 0.0, True, False), "(6, 3, 0.0, True, False)"),
        (
            problem.MultiHeadAttention(bias=False, causal=True, dropout=0.0, n_head=3, n_embd=6),
            "(bias=False, causal=True, dropout=0.0, n_head=3, n_embd=6)",
        ),
    ]:
        set_weights(module.double(), weights)
        check(
            module(x=x.clone()),
            expected,
            f"attention(x=x) with attention = MultiHeadAttention{making}",
        )


@pytest.mark.points(0.5)
def test_nothing_is_remembered(problem, rng):
    """Each call is about its own x and the present weights; nothing is left of other calls"""
    weights, inputs = (
        random_weights(rng, 6),
        [rng.normal(2, 4, 6), rng.normal(2, 4, 6), rng.normal(3, 4, 6)],
    )
    module = layer(problem, weights, 2, causal=True)
    call = f"{named(6, 2, causal=True)}(x)"
    outputs = [module(x.clone()) for x in inputs]
    for number, (x, output) in enumerate(zip(inputs, outputs, strict=True), 1):
        expected = attention_by_hand(x, weights, 2, True)
        check(output, expected, f"call {number} of {call}, looked at after all three")

    x, others = inputs[0], random_weights(rng, 6)
    other = layer(problem, others, 2)
    expected = attention_by_hand(x, others, 2, False)
    check(other(x.clone()), expected, f"{named(6, 2)}(x), after calls of another layer")
    set_weights(module, others)
    expected = attention_by_hand(x, others, 2, True)
    check(module(x.clone()), expected, f"{call}, after its weights were changed")


@pytest.mark.points(0.25)
def test_no_seed_is_set(problem, rng):
    """The layers start from random weights, nothing sets a seed, and evaluation draws nothing"""
    starts = []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        module = problem.MultiHeadAttention(6, 2, dropout=0.3).eval()
        check_layer(module, "c_attn", 6, 18)
        check_layer(module, "c_proj", 6, 6)
        weights = (module.c_attn.weight, module.c_proj.weight)
        starts.append([weight.detach().clone() for weight in weights])
    for name, *pair in zip(("c_attn", "c_proj"), *starts, strict=True):
        require(
            not torch.equal(*pair),
            f"{named(6, 2)}, made twice\nBoth times `{name}` starts with the same weights, though "
            "the seed was set to 1 before the first and to 2 before the second.",
        )
    random_state = torch.get_rng_state()
    module(rng.normal(2, 3, 6, dtype=torch.float32))
    require(
        torch.equal(torch.get_rng_state(), random_state),
        f"{named(6, 2, dropout=0.3)}.eval()(x)\nIt changed the global random state; nothing in "
        "evaluation needs chance.",
    )


@pytest.mark.points(0.25)
def test_attention_is_your_own(problem, rng):
    """MultiHeadAttention is written without PyTorch's own attention functions"""
    for causal in (False, True):
        layer(problem, random_weights(rng, 4), 2, causal=causal, dropout=0.1)(rng.normal(1, 3, 4))


def waves(*shape, phase=0.0):
    """Fixed numbers between -1 and 1, without any rng."""
    n = math.prod(shape)
    return torch.sin(torch.arange(n, dtype=torch.float64) * 1.7 + phase).reshape(shape)


def wave_weights(n_embd):
    """Fixed weights of a layer of this width."""
    return {
        "c_attn.weight": waves(3 * n_embd, n_embd, phase=0.1) * 0.8,
        "c_attn.bias": waves(3 * n_embd, phase=0.2) / 2,
        "c_proj.weight": waves(n_embd, n_embd, phase=0.3),
        "c_proj.bias": waves(n_embd, phase=0.4),
    }


def probe(problem):
    """Small fixed questions; known mistakes answer them differently, each in its own way."""
    weights, x = wave_weights(6), waves(2, 4, 6, phase=0.5)
    counting = torch.arange(24, dtype=torch.float64)

    def steady(module, x):
        # What chance decides says nothing about a mistake, only that there was chance.
        first = module(x)
        again = [torch.allclose(module(x), first, equal_nan=True) for _ in range(4)]
        return first if all(again) else False

    def forward(x=x, n_head=2, weights=weights, evaluate=False, **options):
        return steady(layer(problem, weights, n_head, **options).train(not evaluate), x)

    def without_bias():
        if len(list(problem.MultiHeadAttention(6, 2, bias=False).parameters())) != 2:
            return False
        return forward(weights={name: weights[name] for name in weights if "weight" in name})

    def defaults():
        module = problem.MultiHeadAttention()
        sizes = (module.n_embd, module.n_head, module.head_dim)
        rates = (module.attn_dropout.p, module.resid_dropout.p)
        return torch.tensor([*sizes, *rates, len(list(module.parameters()))])

    def default_forward():
        module = problem.MultiHeadAttention(6, 2).double()
        set_weights(module, weights)
        return steady(module, x)

    def layers(dropout, bias):
        module = problem.MultiHeadAttention(12, 3, dropout, False, bias)
        shapes = [
            tuple(p.shape) for name, p in sorted(parameters(module).items()) if name in GPT2_NAMES
        ]
        sizes = [module.n_embd, module.n_head, module.head_dim]
        for name in ("attn_dropout", "resid_dropout"):
            child = getattr(module, name, None)
            sizes.append(child.p if isinstance(child, nn.Dropout) else -1)
        return torch.tensor([*sizes, *(size for shape in shapes for size in shape)])

    def accepted(n_embd, n_head):
        problem.MultiHeadAttention(n_embd, n_head)
        return True

    def extreme(case):
        low, tokens = plain_weights(6), waves(1, 4, 6)
        if case == "far below":
            low["c_attn.bias"][[0, 3]] = 1e17
            low["c_attn.bias"][[6, 9]] = -1e18
        elif case == "far above":
            low["c_attn.bias"][[0, 3]] = 1
            low["c_attn.weight"][[6, 9], 0] = 1
            low["c_attn.weight"][12, 0] = 0
            tokens[:, -1, 0] = 1e30
        else:
            low["c_attn.weight"][[0, 3], 0] = 1
            low["c_attn.bias"][[6, 9]] = 1
            low["c_attn.weight"][12, 0] = 0
            tokens[0, :, 0] = torch.tensor([4000.0, -4000, 0, 2000])
        return forward(tokens, weights=low, causal=case != "rows apart")

    def second_call():
        module = layer(problem, weights, 2, causal=True).eval()
        module(x)
        return module(x[:1] + 1)

    def lengths():
        module = layer(problem, weights, 2, causal=True).eval()
        return torch.cat([module(x[:, :n] * n) for n in (3, 4, 2, 1)], dim=1)

    @torch.no_grad()
    def long():
        module = layer(problem, plain_weights(2), 1, causal=True).eval()
        return (
            not quick(module, 2, LONG) or module(torch.ones(1, LONG, 2).double()).sum() / 2 / LONG
        )

    def gradient(name):
        tokens = x.clone().requires_grad_()
        module = layer(problem, weights, 2, causal=True).eval()
        inputs = {"x": tokens} | parameters(module)
        return gradients(module(tokens), inputs, waves(2, 4, 6, phase=0.6), "")[name].sum(-1)

    def split_gradient():
        tokens = x.clone().requires_grad_()
        heads = problem.split_heads(tokens, 2)
        return gradients(heads, {"x": tokens}, waves(*heads.shape), "")["x"]

    def merge_gradient():
        heads = counting.reshape(2, 3, 2, 2).requires_grad_()
        merged = problem.merge_heads(heads)
        return gradients(merged, {"x": heads}, waves(*merged.shape), "")["x"]

    def changed():
        tokens, heads = x.clone(), counting.reshape(2, 3, 2, 2).clone()
        module = layer(problem, weights, 2, causal=True)
        problem.split_heads(tokens, 2)
        problem.merge_heads(heads)
        module(tokens)
        same = all(torch.equal(parameters(module)[name], w) for name, w in weights.items())
        kept = torch.equal(heads, counting.reshape(2, 3, 2, 2))
        return not (same and kept and torch.equal(tokens, x))

    def rounded_off(n_head):
        output = forward(n_head=n_head)
        if output is False:
            return False
        error = (output - attention_by_hand(x, weights, n_head, False)).abs().max()
        return 1e-11 < error < 1e-3

    def state_changed():
        module = layer(problem, weights, 2, dropout=0.5).eval()
        before = torch.get_rng_state()
        module(x)
        return not torch.equal(torch.get_rng_state(), before)

    def made_alike():
        starts = []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            starts.append(problem.MultiHeadAttention(6, 2).c_attn.weight.detach().clone())
        return torch.equal(*starts)

    def drawn(seeds):
        module = layer(problem, weights, 2, dropout=0.5)
        outputs = []
        for seed in seeds:
            torch.default_generator.manual_seed(seed) if seed else None
            outputs.append(module(x))
        return torch.equal(outputs[-1], outputs[-2])

    def same_weights_dropped():
        scores, batch = waves(2, 3, 3) * 1.5, 20
        module, sequence = telltale(problem, scores, 0.25)
        calls = [module(sequence.repeat(batch, 1, 1)).detach() for _ in range(2)]
        entries = [output.reshape(batch, 3, 2, 3, COPIES) for output in calls]
        weights = shown_weights(scores, causal=False)
        return torch.equal(*(read_dropped(entry, weights, 0.25)[0] for entry in entries))

    @functools.cache
    def telltale_output():
        torch.default_generator.manual_seed(1)
        scores, batch = waves(2, 3, 3) * 1.5, 300
        module, sequence = telltale(problem, scores, 0.25)
        entries = module(sequence.repeat(batch, 1, 1)).detach().reshape(batch, 3, 2, 3, COPIES)
        return entries, *read_dropped(entries, shown_weights(scores, False), 0.25)

    def shared(dropped):
        agree = [(dropped.int().diff(dim=d) == 0).double().mean() for d in range(dropped.dim())]
        return (torch.stack(agree) > 0.95) & (dropped.double().mean() > 0.02)

    def dropped(question):
        entries, weight, entry = telltale_output()
        if question == "weights":
            return shared(weight)
        if question == "entries":
            return shared(entry.flatten(2))
        if shared(weight).any() or shared(entry.flatten(2)).any():
            return False  # Then there is too much chance in the numbers.
        if question == "values":
            kept = entries[entries.abs() > 1e-9]
            return torch.stack([kept.min(), kept.max()])
        if question == "rates":
            return torch.stack([(d.double().mean() * 10 + 0.2).floor() for d in (weight, entry)])
        low = entries < 1 / 0.75 + 1e-6
        return (low.int().diff(dim=1) == 0).double().mean() > 0.595

    def training_gradient():
        module = layer(problem, weights, 2, dropout=0.5)
        inputs = {"c_attn": parameters(module)["c_attn.weight"]}
        found = gradients(module(x), inputs, waves(2, 4, 6, phase=0.7), "")
        return found["c_attn"].isfinite().all()

    return {
        "split_heads, 3 heads": attempt(problem.split_heads, counting.reshape(2, 2, 6), 3),
        "split_heads, 2 heads": attempt(problem.split_heads, counting.reshape(1, 4, 6), 2),
        "split_heads, 1 position": attempt(problem.split_heads, counting.reshape(4, 1, 6), 1),
        "split_heads, float32": attempt(problem.split_heads, counting.reshape(2, 2, 6).float(), 3),
        "split_heads, gradient": attempt(split_gradient),
        "merge_heads": attempt(problem.merge_heads, counting.reshape(2, 3, 2, 2)),
        "merge_heads, 1 sequence": attempt(problem.merge_heads, counting.reshape(1, 3, 4, 2)),
        "merge_heads, 1 position": attempt(problem.merge_heads, counting.reshape(4, 2, 1, 3)),
        "merge_heads, float32": attempt(problem.merge_heads, counting.reshape(2, 3, 2, 2).float()),
        "merge_heads, gradient": attempt(merge_gradient),
        "layers": attempt(layers, 0.25, True),
        "layers without bias": attempt(layers, 0.0, False),
        "defaults": attempt(defaults),
        "n_head 0": attempt(accepted, 12, 0),
        "n_head -4": attempt(accepted, 12, -4),
        "n_head 5": attempt(accepted, 12, 5),
        "n_head 1": attempt(accepted, 12, 1),
        "attention": attempt(forward),
        "causal attention": attempt(forward, causal=True),
        "default attention": attempt(default_forward),
        "attention, 1 head": attempt(forward, x[:1], n_head=1),
        "attention, 6 heads": attempt(forward, x[:1], n_head=6, causal=True),
        "attention without bias": attempt(without_bias),
        "attention, 1 sequence": attempt(forward, x[:1], causal=True),
        "attention, 1 position": attempt(forward, x[:, :1], causal=True),
        "attention, float32": attempt(forward, x.float(), dtype=torch.float32),
        "scores far below 0": attempt(extreme, "far below"),
        "future scores far above": attempt(extreme, "far above"),
        "rows of scores far apart": attempt(extreme, "rows apart"),
        "second call": attempt(second_call),
        "several lengths": attempt(lengths),
        "long sequence": attempt(long),
        "gradient of x": attempt(gradient, "x"),
        "gradient of c_attn": attempt(gradient, "c_attn.weight"),
        "gradient of c_proj": attempt(gradient, "c_proj.weight"),
        "argument changed": attempt(changed),
        "float64 rounded off": attempt(rounded_off, 2),
        "float64 rounded off, 6 heads": attempt(rounded_off, 6),
        "evaluation": attempt(forward, evaluate=True, dropout=0.5),
        "evaluation, causal": attempt(forward, evaluate=True, dropout=0.5, causal=True),
        "evaluation draws": attempt(state_changed),
        "other seed, same weights": attempt(made_alike),
        "same seed, same output": attempt(drawn, [3, 3]),
        "other seed, same output": attempt(drawn, [3, 4]),
        "next call, same output": attempt(drawn, [3, 0]),
        "next call, same weights dropped": attempt(same_weights_dropped),
        "dropout, least and most": attempt(dropped, "values"),
        "dropout, rates": attempt(dropped, "rates"),
        "dropout, shared weights": attempt(dropped, "weights"),
        "dropout, shared entries": attempt(dropped, "entries"),
        "dropout, queries agree": attempt(dropped, "queries"),
        "dropout, gradient": attempt(training_gradient),
    }


# --- hidden tests ---


def both(problem, solution, weights, n_head, **options):
    """The student's layer and the reference's, with the same weights."""
    return layer(problem, weights, n_head, **options), layer(solution, weights, n_head, **options)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("batch", "seq_len", "n_embd", "n_head"),
    [(2, 3, 20, 4), (3, 7, 12, 2), (1, 2, 35, 5), (5, 1, 8, 8), (2, 9, 7, 1), (4, 2, 18, 3)],
)
def test_hidden_heads(problem, solution, rng, batch, seq_len, n_embd, n_head):
    """split_heads and merge_heads are right for other sizes, and so are their gradients"""
    x = rng.normal(batch, seq_len, n_embd).requires_grad_()
    call = f"split_heads(x, {n_head}) with x of shape {tuple(x.shape)}"
    actual, expected = problem.split_heads(x=x, n_head=n_head), solution.split_heads(x, n_head)
    check(actual, expected, call)
    upstream = rng.normal(*expected.shape)
    check_gradients(
        gradients(actual, {"x": x}, upstream, call),
        gradients(expected, {"x": x}, upstream, call),
        call,
    )
    heads = rng.normal(*expected.shape).requires_grad_()
    call = f"merge_heads(x) with x of shape {tuple(heads.shape)}"
    actual, expected = problem.merge_heads(x=heads), solution.merge_heads(heads)
    check(actual, expected, call)
    upstream = rng.normal(*expected.shape)
    check_gradients(
        gradients(actual, {"x": heads}, upstream, call),
        gradients(expected, {"x": heads}, upstream, call),
        call,
    )


@pytest.mark.points(2.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize(
    ("batch", "seq_len", "n_embd", "n_head"),
    [(3, 6, 20, 4), (2, 9, 14, 2), (1, 8, 15, 5), (4, 1, 6, 3), (1, 1, 5, 1), (2, 3, 7, 7)],
)
def test_hidden_attention(problem, solution, rng, batch, seq_len, n_embd, n_head, causal, bias):
    """MultiHeadAttention is right for other sizes, and so are all its gradients"""
    weights = random_weights(rng, n_embd, bias=bias)
    student, reference = both(problem, solution, weights, n_head, causal=causal)
    student.train(bias)  # Without dropout, train() and eval() are the same, for gradients too.
    x, upstream = (
        rng.normal(batch, seq_len, n_embd).requires_grad_(),
        rng.normal(batch, seq_len, n_embd),
    )
    call = f"{named(n_embd, n_head, causal=causal, bias=bias)}(x) with x of shape {tuple(x.shape)}"
    actual, expected = student(x.clone()), reference(x)
    check(actual, expected, call, sizes={"head_dim": n_embd // n_head, "n_embd": n_embd})
    found, wanted = (
        gradients(output, {"x": x} | parameters(module), upstream, call)
        for output, module in [(actual, student), (expected, reference)]
    )
    check_gradients(found, wanted, call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("n_embd", [8, 15])
@pytest.mark.parametrize("n_head", [0, -2, -3, 7, 6, 30])
def test_hidden_impossible_heads(problem, n_embd, n_head):
    """A number of heads below 1, or one that does not divide n_embd, raises ValueError"""
    refuse(problem, n_embd, n_head)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize(("n_embd", "n_head"), [(10, 5), (9, 1), (4, 4), (32, 16)])
def test_hidden_gpt2_names(problem, solution, rng, n_embd, n_head, bias):
    """Weights under GPT-2's names can be loaded, and the attributes fit any size"""
    module = problem.MultiHeadAttention(n_embd, n_head, 0.4, True, bias).double()
    sizes = (module.n_embd, module.n_head, module.head_dim)
    expected = (n_embd, n_head, n_embd // n_head)
    call = named(n_embd, n_head, bias=bias)
    message = f"{call} has n_embd, n_head, head_dim = {sizes}; expected {expected}."
    require(sizes == expected, message)
    check_layer(module, "c_attn", n_embd, 3 * n_embd, bias=bias)
    check_layer(module, "c_proj", n_embd, n_embd, bias=bias)
    for name in ("attn_dropout", "resid_dropout"):
        rate = getattr(getattr(module, name, None), "p", None)
        require(rate == 0.4, f"{name} of {call} has the rate {rate}; expected 0.4.")
    weights, x = random_weights(rng, n_embd, bias=bias), rng.normal(2, 3, n_embd)
    unknown = module.load_state_dict(weights, strict=False).unexpected_keys
    require(not unknown, f"{call} has no place for the weights {unknown}.")
    reference = layer(solution, weights, n_head, causal=True)
    check(
        module.eval()(x.clone()), reference(x), f"{call}(x) with weights loaded by load_state_dict"
    )


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("seq_len", "n_embd", "n_head"), [(7, 8, 2), (4, 15, 5)])
def test_hidden_extreme_scores(problem, solution, rng, seq_len, n_embd, n_head, dtype):
    """The future has the weight 0 and the rest is right, however large or small the scores are"""
    starts = torch.arange(0, n_embd, n_embd // n_head)
    low, high, x = plain_weights(n_embd), plain_weights(n_embd), rng.normal(2, seq_len, n_embd)
    low["c_attn.bias"][starts] = -3e16
    low["c_attn.bias"][n_embd + starts] = 2e17
    high["c_attn.bias"][starts] = 1
    high["c_attn.weight"][n_embd + starts, 0] = 1
    high["c_attn.weight"][2 * n_embd, 0] = 0
    last_is_high = x.clone()
    last_is_high[:, -1, 0] = 3e25
    apart = plain_weights(n_embd)
    apart["c_attn.weight"][starts, 0] = 1
    apart["c_attn.bias"][n_embd + starts] = 1
    apart["c_attn.weight"][2 * n_embd, 0] = 0  # else the sum of large values decides, rounded
    rows_apart = x.clone()
    rows_apart[:, :, 0] = 5000 * (torch.arange(seq_len) - seq_len // 2)
    for weights, tokens, causal, case in [
        (low, x, True, "all scores far below 0"),
        (high, last_is_high, True, "one future score far above 0"),
        (apart, rows_apart, True, "rows of scores far apart"),
        (apart, rows_apart, False, "rows of scores far apart"),
    ]:
        modules = both(problem, solution, weights, n_head, causal=causal, dtype=dtype)
        actual, expected = (module(tokens.to(dtype, copy=True)) for module in modules)
        check(actual, expected, f"{named(n_embd, n_head, causal=causal)}(x) with {case}")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_hidden_precision(problem, solution, rng, causal, dtype):
    """Outputs and gradients have the dtype of the layer, with its precision"""
    weights = {name: weight.to(dtype) for name, weight in random_weights(rng, 15).items()}
    student, reference = both(problem, solution, weights, 5, causal=causal, dtype=dtype)
    x, upstream = (
        rng.normal(3, 6, 15, dtype=dtype).requires_grad_(),
        rng.normal(3, 6, 15, dtype=dtype),
    )
    call = f"{named(15, 5, causal=causal)}(x) in {str(dtype).removeprefix('torch.')}"
    actual, expected = student(x.clone()), reference(x)
    check(actual, expected, call)
    found, wanted = (
        gradients(actual, {"x": x}, upstream, call),
        gradients(expected, {"x": x}, upstream, call),
    )
    check_gradients(found, wanted, call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_hidden_second_call(problem, solution, rng, causal):
    """Calls do not touch each other, the argument, the weights, or the global random state"""
    weights = random_weights(rng, 12)
    student, reference = both(problem, solution, weights, 3, causal=causal, dropout=0.3)
    student.eval(), reference.eval()
    inputs = [
        rng.normal(2, 5, 12),
        rng.normal(2, 5, 12),
        rng.normal(1, 8, 12),
        rng.normal(4, 2, 12),
        rng.normal(3, 5, 12),
    ]
    copies = [x.clone() for x in inputs]
    call = f"{named(12, 3, causal=causal, dropout=0.3)}.eval()(x)"
    random_state = torch.get_rng_state()
    outputs = [student(x) for x in inputs]
    unchanged = torch.equal(torch.get_rng_state(), random_state)
    require(unchanged, f"{call}\nIt changed the global random state; nothing here needs chance.")
    for number, (output, x, copy) in enumerate(zip(outputs, inputs, copies, strict=True), 1):
        require(torch.equal(x, copy), f"{call}\nIt changed its argument x.")
        check(output, reference(x), f"call {number} of {call}")
    for name, weight in weights.items():
        unchanged = torch.equal(parameters(student)[name], weight)
        require(unchanged, f"{call}\nIt changed its own {name}.")


@pytest.mark.points(0.5)
def test_hidden_long_sequence(problem, rng):
    """A causal layer works for a sequence longer than any limit one would think of"""
    weights, x = random_weights(rng, 2), rng.normal(1, 2100, 2).float()
    module = layer(problem, weights, 1, causal=True, dtype=torch.float32)
    if quick(module, 2, 2100, torch.float32):
        positions = [0, 1, 1500, 2099]
        call = f"{named(2, 1, causal=True)}(x) with x of shape {tuple(x.shape)}"
        with torch.no_grad():
            output = check_form(module(x.clone()), x, call)
        expected = attention_by_hand(x, weights, 1, True, positions)
        check(output[:, positions], expected, f"{call}, at the positions {positions}")


@pytest.mark.points(2)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize(("n_head", "seq_len", "dropout"), [(2, 3, 0.4), (4, 2, 0.2)])
def test_hidden_dropout(problem, rng, n_head, seq_len, dropout, causal):
    """In training weights and entries are dropped one by one, for other sizes and rates too"""
    check_dropout(problem, rng.normal(n_head, seq_len, seq_len), dropout, causal, batch=400)


@pytest.mark.points(0.5)
def test_hidden_dropout_modes(problem, solution, rng):
    """train() and eval() switch dropout on and off as often as one likes"""
    weights, x = random_weights(rng, 10), rng.normal(3, 6, 10)
    student, reference = both(problem, solution, weights, 5, causal=True, dropout=0.5)
    expected = reference.eval()(x)
    call = f"{named(10, 5, causal=True, dropout=0.5)}"
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        output = check_form(student.train()(x.clone()), x, f"{call}.train()(x)")
        share = (output == 0).double().mean().item()
        message = f"{call}.train()(x)\nAbout half of the output should be 0, but {share:.0%} is."
        require(0.2 < share < 0.8, message)
        check(student.eval()(x.clone()), expected, f"{call}.eval()(x)")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_hidden_gradients_in_training(problem, rng, causal):
    """With dropout in training, gradients are those of what was kept, for other sizes too"""
    check_gradients_in_training(problem, rng, 6, 3, 0.2, causal)
