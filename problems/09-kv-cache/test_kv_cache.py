"""Tests of problem 09. Run them with `uv run pytest` in this folder."""

import itertools
import math
from functools import partial

import pytest
import torch

from grader.code.cost import counting
from grader.code.tensors import parameters
from grader.run import checks
from shared import robust
from shared import worked_example as example
from shared.oracles import kv_cache as oracles
from shared.small_gpt import attention_weights, gpt_weights

NEAR = {"rtol": 1e-3, "atol": 1e-4}
"""Tolerances for a whole model: in float32, rounding errors add up over the layers."""

SLOPES = {"rtol": 1e-3, "atol": 1e-3}
"""Tolerances for gradients in float32, which are sums over many tokens."""

EXACT = {"rtol": 1e-12, "atol": 1e-12}
"""Tolerances in float64 for a sequence in chunks; rounding errors are about 1e-14."""

CLEAR = 1e-4
"""The least difference between the two largest logits for each new token, so that rounding errors
do not decide which token is generated."""


# Modules with known weights, and their results.


def make_attention(problem, weights, n_head, dtype=torch.float32):
    """Return the student's CachedAttention in this dtype, with these weights."""
    n_embd, bias = len(weights["c_proj.weight"]), "c_proj.bias" in weights
    return example.load_weights(problem.CachedAttention(n_embd, n_head, bias), weights, dtype)


SMALL = {"vocab_size": 11, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2}
"""Sizes of a model for the tests."""


def make_gpt(problem, config, weights, dtype=torch.float32):
    """Return the student's CachedGPT of these sizes in this dtype, with these weights."""
    module = problem.CachedGPT(problem.GPTConfig(**config)).to(dtype)
    checks.set_weights(module, weights)
    return module


def weights_for(rng, config):
    """Return random weights for a model of these sizes, which writes many different tokens.

    All rows of wte have the same norm, so that no token is the most probable one everywhere.
    """
    names = ("vocab_size", "n_positions", "n_embd", "n_layer")
    bias = config.get("bias", True)
    weights = gpt_weights(rng, *(config[name] for name in names), bias=bias)
    kinds = weights["transformer.wte.weight"]
    kinds *= math.sqrt(config["n_embd"]) / 2 / kinds.norm(dim=-1, keepdim=True)
    weights["transformer.ln_f.weight"][:] = 1
    if bias:
        weights["transformer.ln_f.bias"][:] = 0
    return weights | {"lm_head.weight": kinds}


def tokens(rng, batch, length, config=SMALL):
    """Return random tokens, (batch, length)."""
    return torch.randint(config["vocab_size"], (batch, length), generator=rng.generator)


def random_past(rng, batch, n_head, length, head_dim, dtype=torch.float32):
    """Return random keys and values, as a value for `past`."""
    return tuple(rng.normal(batch, n_head, length, head_dim, dtype=dtype) for _ in range(2))


def unpack(result, call, of="the output and the present"):
    """Return the two parts of a call's result."""
    return example.unpack(result, 2, of, call)


def pair(present, call):
    """Return the keys and the values in `present`."""
    return unpack(present, f"the present of {call}", "the keys and the values")


def layers(present, n_layer, call):
    """Return the keys and values of each layer in `present`."""
    what = "the keys and values of each layer"
    pairs = example.unpack(present, n_layer, what, f"the present of {call}")
    return [pair(each, f"layer {number} of {call}") for number, each in enumerate(pairs)]


def run_attention(module, x, past, call):
    """Call an attention with copies of `x` and `past`, and return the output and `present`."""
    return unpack(module(x.clone(), copied(past)), call)


def run_model(module, idx, past, call):
    """Call a model with copies of `idx` and `past`, and return the logits and `present`."""
    return unpack(module(idx.clone(), copied(past)), call, "the logits and the present")


def copied(past, copy=torch.clone):
    """Return a copy of `past`, with copies of its lists and tensors."""
    if torch.is_tensor(past):
        return copy(past)
    kind = {list: list, tuple: tuple}.get(type(past))
    return kind(copied(part, copy) for part in past) if kind else past


def detached(past):
    """Return a detached copy of `past`, so that the graph of the call is freed."""
    return copied(past, lambda tensor: tensor.detach().clone())


def with_copied_lists(past):
    """Return a copy of `past` with copied lists, but with the same tensors."""
    return copied(past, lambda tensor: tensor)


def same_past(one, other):
    """Return whether two values of `past` have the same structure and numbers."""
    if torch.is_tensor(one) and torch.is_tensor(other):
        return torch.equal(one, other)
    many = isinstance(one, list | tuple) and isinstance(other, list | tuple)
    return one is other or many and len(one) == len(other) and all(map(same_past, one, other))


def continue_past(module, new, past, call):
    """Call a module and return both results. Require that the call does not change `past`."""
    passed, before = with_copied_lists(past), detached(past)
    results = unpack(module(new, passed), call)
    message = "Your code changed a list or a tensor of its past. Make a new one, since another "
    message += "text may continue from the same past."
    checks.require(same_past(passed, before), f"{call}\n{message}")
    return results


def check_both(result, expected, call, **near):
    """Compare the output and the `present` that a CachedAttention returned."""
    (output, present), (right, right_pair) = unpack(result, call), checks.parts(expected, 2)
    checks.check(output, right, call, **near)
    check_pair(present, right_pair, call, **near)


def check_pair(present, expected, call, compare=checks.check, **near):
    """Use `compare` to compare the keys and values in `present` with the expected ones."""
    pairs = zip(pair(present, call), checks.parts(expected, 2), strict=True)
    for name, (actual, right) in zip(("keys", "values"), pairs, strict=True):
        compare(actual, right, f"the {name} in the present of {call}", **near)


def ways_to_cut(length):
    """Return all ways to divide a length into pieces, sorted by the number of pieces."""
    ways = []
    for cuts in range(length):
        for places in itertools.combinations(range(1, length), cuts):
            ends = (0, *places, length)
            ways.append(tuple(end - start for start, end in itertools.pairwise(ends)))
    return ways


def check_every_cut(run, output, pairs, length, call, compare=checks.check, **near):
    """Check the outputs and the last `present` for every way to cut a sequence into pieces.

    Args:
        run: a function, called as run(first, last, past, text). It returns the output for the
            positions from `first` to `last` - 1, and `present` as a list of (keys, values) pairs.
        output: the expected output for the whole sequence.
        pairs: the expected (keys, values) pairs in `present` after the whole sequence.
        length: the length of the sequence.
        call: the call, as text.
        compare: `check`, or `check_same` if `pairs` comes from the student's code, too.
        near: allowed differences, as for `check`.
    """
    presents = {(): None}  # the keys are the pieces read so far, which several cuts share
    for pieces in ways_to_cut(length):
        text = f"{call}, cut into {' + '.join(map(str, pieces))} tokens"
        for count in range(1, len(pieces) + 1):
            first, last = sum(pieces[: count - 1]), sum(pieces[:count])
            if pieces[:count] in presents:
                continue
            actual, present = run(first, last, presents[pieces[: count - 1]], text)
            checks.check(actual, output[:, first:last], text, **near)
            presents[pieces[:count]] = detached(present)
        for present, right in zip(presents[pieces], pairs, strict=True):
            check_pair(present, right, text, compare, **near)


# kv_cache_bytes


@pytest.mark.points(0.4)
def test_cache_in_bytes(problem):
    """kv_cache_bytes counts the keys and the values of all layers, tokens and sequences"""
    sizes = [(1, 1, 1, 1, 1), (12, 768, 1024), (48, 1600, 1024), (12, 768, 1024, 8)]
    sizes += [(12, 768, 1024, 8, 4), (2, 3, 5, 7, 11)]
    names = ("n_layer", "n_embd", "seq_len", "batch_size", "bytes_per_number")
    for arguments in sizes:
        expected, call = oracles.BYTES[arguments], f"kv_cache_bytes{arguments}"
        number = problem.kv_cache_bytes(*arguments)
        checks.check_that(number, oracles.is_number_of_bytes, call, expected)
        named = dict(reversed(list(zip(names, arguments, strict=False))))
        call = f"kv_cache_bytes({', '.join(f'{name}={n}' for name, n in named.items())})"
        number = problem.kv_cache_bytes(**named)
        checks.check_that(number, oracles.is_number_of_bytes, call, expected)


@pytest.mark.points(0.1)
def test_bytes_are_an_int(problem):
    """kv_cache_bytes returns an int"""
    number = problem.kv_cache_bytes(2, 3, 5, 7, 11)
    checks.check_that(number, oracles.is_int, "kv_cache_bytes(2, 3, 5, 7, 11)")


# CachedAttention


@pytest.mark.points(0.25)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_layers(problem, bias):
    """CachedAttention has the layers c_attn and c_proj, and no other parameters"""
    module = problem.CachedAttention(12, 3, bias=bias)
    checks.check_layer(module, "c_attn", 12, 36, bias=bias)
    checks.check_layer(module, "c_proj", 12, 12, bias=bias)
    names = [f"{name}.{kind}" for name in ("c_attn", "c_proj") for kind in ("weight", "bias")]
    expected = [name for name in names if bias or name.endswith("weight")]
    actual, expected = sorted(parameters(module)), sorted(expected)
    checks.require(actual == expected, f"The parameters are {actual}; expected {expected}.")


@pytest.mark.points(0.25)
def test_defaults_and_names(problem, rng):
    """CachedAttention() has GPT-2's sizes, and arguments can be passed by name or by position"""
    module = problem.CachedAttention()
    checks.check_layer(module, "c_attn", 768, 3 * 768)
    checks.check_layer(module, "c_proj", 768, 768)
    _, present = unpack(module(x=rng.normal(1, 2, 768)), "CachedAttention()(x=x)")
    keys, _ = pair(present, "CachedAttention()(x=x)")
    checks.check_form(
        keys, torch.empty(1, 12, 2, 64), "the keys in the present of CachedAttention()(x)"
    )
    module = problem.CachedAttention(bias=False, n_head=3, n_embd=6)
    checks.check_layer(module, "c_attn", 6, 18, bias=False)
    x = rng.normal(2, 3, 6)
    output, _ = unpack(module(x=x), "CachedAttention(6, 3, bias=False)(x=x)")
    checks.check_form(output, x, "CachedAttention(6, 3, bias=False)(x=x)")


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    ("batch", "n_new", "n_embd", "n_head"),
    [(2, 4, 6, 2), (1, 3, 6, 3), (3, 1, 4, 1), (1, 5, 4, 4), (2, 2, 10, 2)],
)
def test_without_a_past(problem, rng, batch, n_new, n_embd, n_head):
    """Without a past, CachedAttention is causal multi-head attention"""
    weights, x = attention_weights(rng, n_embd), rng.normal(batch, n_new, n_embd)
    call = f"CachedAttention({n_embd}, {n_head})(x) with x of shape {tuple(x.shape)}"
    output, _ = unpack(make_attention(problem, weights, n_head)(x.clone()), call)
    checks.check(output, oracles.attention(x, None, weights, n_head)[0], call)


@pytest.mark.points(0.5)
def test_one_token_in_numbers(problem):
    """The output is 44.16 for query 1, key 2 and value 60 after keys 1, 0 and values 10, 20"""
    weights = {
        "c_attn.weight": torch.tensor([[1.0], [2], [60]]),
        "c_attn.bias": torch.zeros(3),
        "c_proj.weight": torch.ones(1, 1),
        "c_proj.bias": torch.zeros(1),
    }
    module = make_attention(problem, weights, 1)
    past = torch.tensor([[[[1.0], [0]]]]), torch.tensor([[[[10.0], [20]]]])
    call = "CachedAttention(1, 1)(x, past) with the numbers of the README"
    output, present = run_attention(module, torch.ones(1, 1, 1), past, call)
    checks.check(output, oracles.OUTPUT_IN_NUMBERS, call, atol=1e-4)
    check_pair(present, oracles.PRESENT_IN_NUMBERS, call)
    call = "CachedAttention(1, 1)(x, past) with two new tokens, both as in the README"
    output, _ = run_attention(module, torch.ones(1, 2, 1), past, call)
    checks.check(output, oracles.OUTPUTS_IN_NUMBERS, call, atol=1e-4)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("n_past", [0, 1, 4])
@pytest.mark.parametrize(("batch", "n_new", "n_embd", "n_head"), [(2, 3, 6, 2), (1, 1, 6, 3)])
def test_present(problem, rng, batch, n_new, n_embd, n_head, n_past):
    """The present contains the keys and values of the past, then those of the new tokens"""
    weights, x = attention_weights(rng, n_embd), rng.normal(batch, n_new, n_embd)
    past = random_past(rng, batch, n_head, n_past, n_embd // n_head) if n_past else None
    call = f"CachedAttention({n_embd}, {n_head})(x, past) with {n_past} past and {n_new} new tokens"
    module = make_attention(problem, weights, n_head)
    _, present = run_attention(module, x, past, call)
    _, expected = checks.parts(oracles.attention(x, past, weights, n_head), 2)
    check_pair(present, expected, call)
    _, present = unpack(module(past=past, x=x), f"{call}, as attention(past=past, x=x)")
    check_pair(present, expected, f"{call}, as attention(past=past, x=x)")


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    ("n_past", "batch", "n_embd", "n_head"), [(1, 2, 6, 2), (5, 1, 6, 3), (3, 3, 4, 1)]
)
def test_one_more_token(problem, rng, n_past, batch, n_embd, n_head):
    """One new token attends to all of the past and to itself"""
    check_after_past(problem, rng, n_past, 1, batch, n_embd, n_head)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("n_past", "n_new", "batch", "n_embd", "n_head"),
    [(2, 3, 2, 6, 2), (4, 2, 1, 6, 3), (1, 5, 3, 4, 1), (3, 3, 2, 4, 4)],
)
def test_more_tokens_after_a_past(problem, rng, n_past, n_new, batch, n_embd, n_head):
    """Each of several new tokens attends to the past, to itself and to the new tokens before it"""
    check_after_past(problem, rng, n_past, n_new, batch, n_embd, n_head)


def check_after_past(problem, rng, n_past, n_new, batch, n_embd, n_head, bias=True):
    """Compare an attention's output and `present` with the definition, for a random `past`."""
    weights, x = attention_weights(rng, n_embd, bias=bias), rng.normal(batch, n_new, n_embd)
    past = random_past(rng, batch, n_head, n_past, n_embd // n_head)
    call = f"CachedAttention({n_embd}, {n_head})(x, past) with {n_past} past and {n_new} new tokens"
    result = run_attention(make_attention(problem, weights, n_head), x, past, call)
    check_both(result, oracles.attention(x, past, weights, n_head), call)


@pytest.mark.points(1.25)
@pytest.mark.parametrize(
    ("dtype", "near"), [(torch.float32, {}), (torch.float64, EXACT)], ids=["float32", "float64"]
)
def test_every_way_to_cut(problem, rng, dtype, near):
    """All 64 ways to cut 7 tokens into chunks give the result of one pass, in float64 to 1e-12"""
    weights, x = attention_weights(rng, 6), rng.normal(2, 7, 6, dtype=dtype)
    module, call = make_attention(problem, weights, 2, dtype), "CachedAttention(6, 2) on 7 tokens"
    expected, right = checks.parts(oracles.attention(x, None, weights, 2), 2)

    def run(first, last, past, text):
        output, present = run_attention(module, x[:, first:last], past and past[0], text)
        return output, [pair(present, text)]

    check_every_cut(run, expected, [right], 7, call, **near)


@pytest.mark.points(0.5)
def test_two_caches_never_touch(problem, rng):
    """A call does not change its past, so two texts can continue from it"""
    weights, x = attention_weights(rng, 6), rng.normal(2, 4, 6)
    module, call = make_attention(problem, weights, 2), "CachedAttention(6, 2)(x, past)"
    first = "CachedAttention(6, 2)(x)"
    _, past = unpack(module(x.clone()), first)
    before = copied(pair(past, first))
    presents, ends = [], [rng.normal(2, 2, 6) for _ in range(2)]
    for end in ends:
        _, present = continue_past(module, end.clone(), past, call)
        presents.append((present, copied(pair(present, call))))
        check_pair(past, before, f"{first}, after a call with this past", checks.check_same)
    for present, copy in presents:
        check_pair(present, copy, f"{call}, compared after a second call", checks.check_same)
    for end, (present, _) in zip(ends, presents, strict=True):
        expected = oracles.attention(torch.cat([x, end], dim=1), None, weights, 2)[1]
        check_pair(present, expected, f"{call}, one of two that continue from the same past")


REACHES = {
    "the output": ("x", "the past's keys", "the past's values", "c_attn.weight", "c_proj.weight"),
    "the keys in the present": ("x", "the past's keys", "c_attn.weight"),
    "the values in the present": ("x", "the past's values", "c_attn.weight"),
}
"""For each result of an attention, the tensors on which it depends."""


@pytest.mark.points(0.5)
@pytest.mark.parametrize("n_new", [1, 3])
def test_gradients(problem, rng, n_new):
    """Gradients flow from the output and the present to x, the past and the weights"""
    weights, x = attention_weights(rng, 4), rng.normal(2, n_new, 4)
    keys, values = random_past(rng, 2, 2, 2, 2)
    inputs = {"x": x, "the past's keys": keys, "the past's values": values} | weights
    module = make_attention(problem, weights, 2)
    call = f"CachedAttention(4, 2)(x, past) with 2 past and {n_new} new tokens"

    def by_hand(tensors):
        x, *past = list(tensors.values())[:3]
        moved = {name: tensors[name] for name in weights}
        output, present = checks.parts(oracles.attention(x, past, moved, 2), 2)
        return output, *checks.parts(present, 2)

    expected, doubles = by_hand(inputs), {name: each.double() for name, each in inputs.items()}
    shapes = [(2, n_new, 4), (2, 2, 2 + n_new, 2), (2, 2, 2 + n_new, 2)]
    upstream = [rng.normal(*shape) for shape in shapes]
    for place, (what, names) in enumerate(REACHES.items()):
        leaves = {name: inputs[name].clone().requires_grad_() for name in list(inputs)[:3]}
        x, *past = (leaf.clone() for leaf in leaves.values())
        output, present = unpack(module(x, tuple(past)), call)
        result, text = (output, *pair(present, call))[place], f"{what} of {call}"
        checks.check(result, expected[place], text)  # a wrong result has wrong gradients
        learning = {name: (leaves | parameters(module))[name] for name in names}
        gradients = checks.gradients(result, learning, upstream[place], text)

        def value(moved, place=place):
            return (by_hand(doubles | moved)[place] * upstream[place]).sum()

        numbers = {name: inputs[name] for name in names}
        example.check_slopes(gradients, value, numbers, text, rng)


# CachedGPT


@pytest.mark.points(0.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_logits_without_a_past(problem, rng, bias):
    """Without a past, CachedGPT returns the logits of a GPT, and keys and values of each layer"""
    config = SMALL | {"n_layer": 3, "bias": bias}
    weights, idx = weights_for(rng, config), tokens(rng, 2, 5)
    module = make_gpt(problem, config, weights)
    call = "CachedGPT(config)(idx) with idx of shape (2, 5)"
    logits, present = unpack(module(idx.clone()), call, "the logits and the present")
    checks.check(logits, oracles.logits(idx, weights, 2), call, **NEAR)
    for number, (keys, values) in enumerate(layers(present, 3, call)):
        for name, tensor in [("keys", keys), ("values", values)]:
            text = f"the {name} of layer {number} in the present of {call}"
            checks.check_form(tensor, torch.empty(2, 2, 5, 4), text)


@pytest.mark.points(1)
def test_positions_go_on(problem, rng):
    """The position of the first new token is the one after the past"""
    weights = weights_for(rng, SMALL)
    for name, weight in weights.items():
        if "c_proj" in name:
            weight[:] = 0  # so the blocks add 0, and only token and position have an effect
    module, idx = make_gpt(problem, SMALL, weights), tokens(rng, 2, 6)
    expected = oracles.logits(idx, weights, 2)
    past, first = None, 0
    for n_new in (3, 1, 2):
        call = f"CachedGPT(config)(idx, past) with {first} past and {n_new} new tokens"
        logits, past = run_model(module, idx[:, first : first + n_new], past, call)
        text = f"{call}, and blocks that add nothing"
        checks.check(logits, expected[:, first : first + n_new], text)
        first += n_new
        past = layers(past, 2, call)


@pytest.mark.points(1.5)
def test_logits_after_a_past(problem, rng):
    """After a past, the logits are the same as in one pass over all tokens"""
    config = SMALL | {"n_layer": 3}
    weights, idx = weights_for(rng, config), tokens(rng, 2, 7)
    module = make_gpt(problem, config, weights)
    expected = oracles.logits(idx, weights, 2)
    for n_past, n_new in [(1, 1), (6, 1), (2, 5), (4, 3)]:
        call = f"CachedGPT(config)(idx, past) with {n_past} past and {n_new} new tokens"
        presents = []  # copies, as later calls may overwrite earlier results
        for length in (n_past, n_past + n_new):
            _, present = unpack(module(idx[:, :length]), call, "the logits and the present")
            layers(present, 3, call)
            presents.append(copied(present))
        past, after = presents
        logits, present = unpack(module(idx=idx[:, n_past : n_past + n_new], past=past), call)
        checks.check(logits, expected[:, n_past : n_past + n_new], call, **NEAR)
        pairs = zip(layers(present, 3, call), layers(after, 3, call), strict=True)
        for number, (actual, right) in enumerate(pairs):
            text = f"layer {number} of {call}, compared with one pass"
            check_pair(actual, right, text, checks.check_same, **NEAR)


@pytest.mark.points(0.25)
def test_gradients_of_a_model(problem, rng):
    """Gradients flow from the logits to all weights, also through the past"""
    weights, idx = weights_for(rng, SMALL), tokens(rng, 2, 5)
    module, upstream = make_gpt(problem, SMALL, weights), rng.normal(2, 2, 11)
    call = "CachedGPT(config)(idx)"
    logits, _ = run_model(module, idx, None, call)
    text = f"the last two logits of {call}"
    in_one_pass = checks.gradients(logits[:, 3:], parameters(module), upstream, text)
    _, past = unpack(module(idx[:, :3]), call, "the logits and the present")
    call = "CachedGPT(config)(idx, past) with 3 past and 2 new tokens"
    logits, _ = unpack(module(idx[:, 3:], past), call, "the logits and the present")
    gradients = checks.gradients(logits, parameters(module), upstream, call)
    for name in weights:
        text = f"the gradient of {call} with respect to {name}"
        checks.check_same(gradients[name], in_one_pass[name], text, **SLOPES)


@pytest.mark.points(2)
def test_every_way_to_cut_a_text(problem, rng):
    """All 64 ways to cut 7 tokens into chunks give the logits of one pass"""
    weights, idx = weights_for(rng, SMALL), tokens(rng, 2, 7)
    module, call = make_gpt(problem, SMALL, weights), "CachedGPT(config) on 7 tokens"
    expected = oracles.logits(idx, weights, 2)
    _, present = run_model(module, idx, None, f"{call} in one pass")

    def run(first, last, past, text):
        logits, present = run_model(module, idx[:, first:last], past, text)
        return logits, layers(present, 2, text)

    pairs = detached(layers(present, 2, call))
    check_every_cut(run, expected, pairs, 7, call, checks.check_same, **NEAR)


@pytest.mark.points(0.5)
def test_two_texts_at_once(problem, rng):
    """Texts that are written in turns, or continue from one past, do not affect each other"""
    weights = weights_for(rng, SMALL)
    module, texts = make_gpt(problem, SMALL, weights), [tokens(rng, 1, 6) for _ in range(3)]
    texts[2][:, :2] = texts[0][:, :2]  # text 2 continues the first two tokens of text 0
    expected = [oracles.logits(idx, weights, 2) for idx in texts]
    call, pasts = "CachedGPT(config)(idx, past)", {}
    for number in (0, 1):
        _, pasts[number] = unpack(module(texts[number][:, :2]), call, "the logits and the present")
    pasts[2] = pasts[0]
    before = [copied(each) for each in layers(pasts[0], 2, call)]
    first = pasts[0]
    for place in range(2, 6):
        for number in (0, 1, 2):
            now = texts[number][:, place : place + 1]
            logits, pasts[number] = continue_past(module, now, pasts[number], call)
            text = f"{call} for text {number + 1} of 3 that are written in turns"
            checks.check(logits, expected[number][:, place : place + 1], text, **NEAR)
    for number, (actual, copy) in enumerate(zip(layers(first, 2, call), before, strict=True)):
        text = f"layer {number} of a past after texts continued from it, by {call}"
        check_pair(actual, copy, text, checks.check_same)


@pytest.mark.points(0.5)
def test_too_many_tokens_are_refused(problem, rng):
    """Past and new tokens together may be n_positions; more raise ValueError"""
    config = SMALL | {"n_positions": 6}
    weights = weights_for(rng, config)
    module, idx = make_gpt(problem, config, weights), tokens(rng, 1, 7)
    expected = oracles.logits(idx[:, :6], weights, 2)
    for n_past in (0, 5, 2):
        past = None
        call = f"CachedGPT(config)(idx, past) with n_positions = 6, {n_past} past and "
        if n_past:
            _, past = run_model(module, idx[:, :n_past], None, call + "no new tokens")
        logits, _ = run_model(module, idx[:, n_past:6], past, f"{call}{6 - n_past} new tokens")
        checks.check(logits, expected[:, n_past:], f"{call}{6 - n_past} new tokens", **NEAR)
        call += f"{7 - n_past} new tokens"
        example.check_refused(call, lambda p=past, n=n_past: module(idx[:, n:], p), "they are 7")


def call_of_attention(problem, right, rng, n_past=4, n_new=3, batch=2, dtype=torch.float32):
    """Return a `robust.Call` of a CachedAttention(6, 2) with random weights and a random `past`.

    `right` takes the weights and returns the oracle, a function of `x` and `past`.
    """
    weights = {name: each.to(dtype) for name, each in attention_weights(rng, 6).items()}
    module, inputs = make_attention(problem, weights, 2, dtype), {"x": rng.normal(batch, n_new, 6)}
    if n_past:
        inputs |= dict(zip(("keys", "values"), random_past(rng, batch, 2, n_past, 3), strict=True))
    return robust.Call(
        f"CachedAttention(6, 2)(x, past) with {n_past} past and {n_new} new tokens",
        lambda x, *past: module(x, past or None),
        {name: each.to(dtype) for name, each in inputs.items()},
        lambda x, *past: right(weights)(x, past or None),
        module=module,
        weights=weights,
        compare=check_both,
    )


def call_of_model(problem, right, rng, n_past=3, n_new=2, batch=2, dtype=torch.float32):
    """Return a `robust.Call` of a CachedGPT with a text in two chunks. See `call_of_attention`."""
    weights = {name: each.to(dtype) for name, each in weights_for(rng, SMALL).items()}
    module = make_gpt(problem, SMALL | {"dropout": 0.5}, weights, dtype)
    call = f"CachedGPT(config) on a text in chunks of {n_past} and {n_new} tokens"

    def in_chunks(idx):
        first, past = unpack(module(idx[:, :n_past]), call, "the logits and the present")
        second, _ = unpack(module(idx[:, n_past:], past), call, "the logits and the present")
        return torch.cat([first, second], dim=1)

    return robust.Call(
        call,
        in_chunks,
        {"idx": tokens(rng, batch, n_past + n_new)},
        right(weights),
        module=module,
        weights=weights,
        near={} if dtype == torch.float64 else NEAR,
    )


PARTS = ("float32", "float64", "transposed memory", "nothing changed", "second call")


@pytest.mark.points(0.5)
@robust.parts(*PARTS)
def test_attention_in_use(problem, rng, part):
    """CachedAttention follows the rules for all problems, which apply to its past, too"""

    def right(weights):
        return lambda x, past: oracles.attention(x, past, weights, 2)

    call = partial(call_of_attention, problem, right, rng)
    robust.check_part(part, rng, call, other={"n_past": 0, "batch": 1})


@pytest.mark.points(0.75)
@robust.parts(*PARTS)
def test_model_in_use(problem, rng, part):
    """CachedGPT follows the rules for all problems, and never drops anything"""

    def right(weights):
        return lambda idx: oracles.logits(idx, weights, 2, dtype=next(iter(weights.values())).dtype)

    robust.check_part(part, rng, partial(call_of_model, problem, right, rng), other={"batch": 1})


@pytest.mark.points(0.25)
@pytest.mark.parametrize("case", ["rows near 2000, -2000 and 0", "growing", "all near -20,000"])
def test_large_scores(problem, rng, case):
    """Results are right for scores in the thousands, also if such scores are masked"""
    # Use float64, as float32 keeps few digits of scores in the thousands.
    weights = {name: each.double() for name, each in attention_weights(rng, 6).items()}
    keys, values = random_past(rng, 2, 2, 3, 3, torch.float64)
    x, weight, bias = rng.normal(2, 5, 6).double(), weights["c_attn.weight"], weights["c_attn.bias"]
    # The scores are the products of entry 0 of queries and keys, which depends on entry 5 of x.
    queries_rows, keys_rows = [0, 3], [6, 9]
    weight[[*queries_rows, *keys_rows]] = 0
    weight[:12, 5] = 0  # else entry 5 of x would give scores of 1e10
    bias[queries_rows] = bias[keys_rows] = keys[..., 0] = 1
    if case == "growing":
        weight[keys_rows, 5] = 1
        x[:, :, 5] = 30_000 * torch.arange(5)
    elif case == "all near -20,000":
        bias[keys_rows] = keys[..., 0] = -35_000
    else:
        weight[queries_rows, 5] = 1
        x[:, :, 5] = torch.tensor([4000.0, -4000, 0, 2000, -2000])
    call, past = f"CachedAttention(6, 2)(x, past) with large scores, {case}", (keys, values)
    result = run_attention(make_attention(problem, weights, 2, torch.float64), x, past, call)
    check_both(result, oracles.attention(x, past, weights, 2), call)


@pytest.mark.points(0.25)
def test_generate_changes_nothing(problem, rng):
    """generate does not change the prompts, the random state and the gradient mode"""
    module = make_gpt(problem, SMALL | {"dropout": 0.5}, weights_for(rng, SMALL)).train()
    idx, call = tokens(rng, 2, 3), "CachedGPT(config).generate(idx, 2)"
    for enabled in (True, False):
        with (
            torch.set_grad_enabled(enabled),
            example.unchanged(call, idx=idx),
            example.state_unchanged(call),
        ):
            text = module.generate(idx, 2)
        checks.check_form(text, torch.empty(2, 5, dtype=torch.int64), call)
        checks.check_same(text[:, :3], idx, f"the prompts in the result of {call}")


# CachedGPT.generate


def clear_prompts(rng, config, batch, length, n_new):
    """Return weights and prompts for which the two largest logits differ by more than CLEAR.

    A single prompt is continued by a 0 and a different token. So code that stops after 0 fails.
    """
    while True:
        weights, prompts = weights_for(rng, config), tokens(rng, batch, length, config)
        texts, nearest = oracles.generated(prompts, n_new, weights, config)
        goes_on = (texts[:, length:-1] == 0) & (texts[:, length + 1 :] != 0)
        if nearest > CLEAR and (batch > 1 or goes_on.any()):
            return weights, prompts


@pytest.mark.points(1.75)
@pytest.mark.parametrize(
    ("batch", "length", "n_new"), [(3, 2, 12), (1, 2, 9), (2, 9, 7), (4, 3, 8)]
)
def test_generate(problem, rng, batch, length, n_new):
    """generate returns the most probable tokens, as without a cache, and reads each token once"""
    weights, prompts = checks.prepared(
        lambda numbers: clear_prompts(numbers, SMALL, batch, length, n_new), rng
    )
    texts = oracles.generated(prompts, n_new, weights, SMALL)[0]
    module, idx = make_gpt(problem, SMALL, weights), prompts.clone()
    call = f"CachedGPT(config).generate(idx, {n_new}) with {batch} prompts of {length} tokens"
    with counting() as cost:
        result = module.generate(idx, n_new)
    checks.check(result, texts, call)
    check_total(cost.operations, SMALL, length, n_new, "generate", batch)
    check_read_once(module, result, cost.operations, call)
    half = n_new // 2
    result = module.generate(max_new_tokens=n_new - half, idx=result[:, : length + half])
    checks.check(result, texts, f"{call}, the first {half} new tokens by an earlier call")
    checks.check(module.generate(prompts.clone(), n_new), texts, f"{call}, once more")


@pytest.mark.points(0.25)
def test_generate_nothing(problem, rng):
    """generate returns the prompts for 0 new tokens, also if they have n_positions tokens"""
    weights = weights_for(rng, SMALL)
    module = make_gpt(problem, SMALL, weights)
    for length in (3, 16):
        prompts = tokens(rng, 2, length)
        expected = oracles.generated(prompts, 0, weights, SMALL)[0]
        call = f"CachedGPT(config).generate(idx, 0) with prompts of {length} tokens"
        checks.check(module.generate(prompts.clone(), 0), expected, call)


@pytest.mark.points(0.5)
def test_generate_refuses_what_is_too_long(problem, rng):
    """generate raises ValueError for more than n_positions tokens, before it computes anything"""
    module, n_positions = make_gpt(problem, SMALL, weights_for(rng, SMALL)), SMALL["n_positions"]
    for length, n_new in [(1, n_positions - 1), (10, n_positions - 10)]:
        prompts = tokens(rng, 2, length)
        call = f"CachedGPT(config).generate(idx, {n_new}) with n_positions = {n_positions} and "
        call += f"2 prompts of {length} tokens"
        text = module.generate(prompts.clone(), n_new)
        checks.check_form(text, torch.empty(2, n_positions, dtype=torch.int64), call)
    for length, n_new in [(1, n_positions), (10, n_positions - 9), (1, 30), (n_positions + 1, 0)]:
        call = f"CachedGPT(config).generate(idx, {n_new}) with n_positions = {n_positions} and "
        call += f"a prompt of {length} tokens"
        prompts = tokens(rng, 1, length)
        with counting() as cost:
            reason = f"they are {length + n_new} in all"
            example.check_refused(call, lambda p=prompts, n=n_new: module.generate(p, n), reason)
        few = length * operations_by_hand(SMALL, 3 * length)  # at least the cost of the prompt
        checks.require(
            cost.operations <= few,
            f"{call}\nIt raised ValueError only after {cost.operations:,} floating point "
            "operations, after it had generated tokens. The lengths are known before that.",
        )


# The cost of one more token


COSTLY = {"vocab_size": 20, "n_positions": 132, "n_embd": 32, "n_layer": 2, "n_head": 4}
"""The size of the model that is used when operations are counted."""

MORE = 3
"""The number of new tokens over which the cost of one token in `generate` is averaged."""


def operations_by_hand(config, length):
    """Return the operations for one more token that attends to `length` tokens, itself included.

    A multiplication and an addition are two operations.
    """
    n_embd = config["n_embd"]
    layers = 3 * n_embd**2 + n_embd**2 + 8 * n_embd**2  # c_attn, c_proj, and the MLP's two layers
    attention = 2 * n_embd * length  # scores and averages, in all heads together
    logits = n_embd * config["vocab_size"]
    return 2 * (config["n_layer"] * (layers + attention) + logits)


def numbers_of_a_token(config):
    """Return how many numbers a cache has for each token: its keys and values in all layers."""
    return 2 * config["n_layer"] * config["n_embd"]


def cost_of_one_more(problem, rng, config, n_past, how):
    """Return the cost of one more token after n_past tokens: in a call, or in `generate`.

    The model reads another text first. So work that is done only once, such as a table for the
    mask, does not count. The function also checks the total cost of all tokens.
    """
    weights = weights_for(rng, config)
    weights["transformer.ln_f.weight"] *= 0.1  # so that a sampled token is seldom the best one
    module = make_gpt(problem, config, weights)
    idx, other, third = (tokens(rng, 1, n_past + 1, config) for _ in range(3))
    if how == "generate":
        module.generate(other[:, 1:], 2)
        # The texts differ, so that stored results for the first one do not help with the second.
        one, texts = cost_of(lambda: module.generate(idx[:, 1:], 1)), []
        more = cost_of(lambda: texts.append(module.generate(third[:, 1:], 1 + MORE)))
        check_total(one[0], config, n_past, 1, how)
        check_total(more[0], config, n_past, 1 + MORE, how)
        check_most_probable(module, texts[0], third[:, 1:])
        return (more[0] - one[0]) // MORE, (more[1] - one[1]) // MORE
    _, past = module(other[:, :n_past])
    module(other[:, n_past:], past)
    results = []
    first = cost_of(lambda: results.append(module(idx[:, :n_past])))
    check_total(first[0], config, n_past, 0, how)
    cost = cost_of(lambda: results.append(module(idx[:, n_past:], results[0][1])))
    call = f"CachedGPT(config)(idx, past) with {n_past} past tokens and a new one"
    text = f"{call}, compared with one pass"
    checks.check_same(results[1][0], module(idx)[0][:, n_past:], text, **NEAR)
    return cost


def check_most_probable(module, text, prompt):
    """Require the most probable tokens, as code could return other tokens at no cost."""
    length = prompt.shape[1]
    call = f"CachedGPT(config).generate(idx, {1 + MORE}) with a prompt of {length} tokens"
    form = torch.empty(1, length + 1 + MORE, dtype=torch.int64)
    text = checks.check_form(text, form, call).clone()
    logits, new = module(text[:, :-1])[0][:, length - 1 :], text[:, length:, None]
    short = logits.amax(-1) - logits.gather(-1, new)[..., 0]
    message = f"{call}\nIn one pass over the whole text, other tokens are more probable."
    checks.require(bool((short < CLEAR).all()), message)


def check_total(operations, config, n_past, n_new, how, batch=1):
    """Require at most three times the operations that are needed to read each token once."""
    call = {
        "call": f"CachedGPT(config)(idx) with {n_past} tokens",
        "generate": f"CachedGPT(config).generate(idx, {n_new}) with a prompt of {n_past} tokens",
    }[how]
    least = batch * (n_past + n_new) * operations_by_hand(config, n_past + n_new)
    checks.require(
        operations <= 3 * least,
        f"{call}\nIt took {operations:,} floating point operations in all, where {least:,} are "
        "enough to read each token once.",
    )


def check_read_once(module, texts, operations, call):
    """Require that texts took at most 1.25 times the operations of one pass over them."""
    whole, _ = cost_of(lambda: module(texts.clone()))
    checks.require(
        operations <= 1.25 * whole,
        f"{call}\nIt took {operations:,} floating point operations, where one pass of your model "
        f"over the whole text takes {whole:,}. Are tokens read twice?",
    )


def cost_of(run):
    """Return the number of operations of a call, and the number of entries that it writes."""
    with counting() as cost:
        run()
    return cost.operations, cost.elements


@pytest.mark.points(1)
@pytest.mark.parametrize("how", ["call", "generate"])
def test_cost_of_one_more_token(problem, rng, how):
    """The cost of one more token is that of one token: earlier tokens are not computed again"""
    check_cost(problem, rng, COSTLY, how)


def check_cost(problem, rng, config, how):
    """Require that one more token costs little after 16 tokens, and not much more after 128."""
    call = {
        "call": "CachedGPT(config)(idx, past) with one new token",
        "generate": "CachedGPT(config).generate, for one token more",
    }[how]
    costs = {n_past: cost_of_one_more(problem, rng, config, n_past, how) for n_past in (16, 128)}
    few, many = costs[16][0], costs[128][0]
    least = operations_by_hand(config, 17)
    advice = "The past holds the results for all earlier tokens; only the new token has to go "
    advice += "through the layers."
    checks.require(
        few > 0,
        f"{call}, after 16 tokens\nIt took {few:,} floating point operations, where {least:,} are "
        "needed. The result must be computed in that call, by PyTorch's matrix products.",
    )
    checks.require(
        few <= 3 * least,
        f"{call}, after 16 tokens\nIt took {few:,} floating point operations, where {least:,} are "
        f"enough. {advice}",
    )
    checks.require(
        many < 3 * few,
        f"{call}\nAfter 16 tokens it took {few:,} floating point operations, after 128 tokens "
        f"{many:,}: {many / few:.1f} times as many; less than 3 times is expected. {advice}",
    )
    in_cache, written = 129 * numbers_of_a_token(config), costs[128][1]
    checks.require(
        written <= 12 * in_cache,
        f"{call}, after 128 tokens\nIts intermediate results have {written:,} numbers in all, and "
        f"the whole cache has {in_cache:,}. {advice}",
    )


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_attention_is_your_own(problem, rng):
    """CachedAttention is written without PyTorch's multi-head attention"""
    module = make_attention(problem, attention_weights(rng, 4), 2)
    _, past = unpack(module(rng.normal(1, 3, 4)), "CachedAttention(4, 2)(x)")
    x, call = rng.normal(1, 1, 4), "CachedAttention(4, 2)(x, past)"
    checks.check_form(unpack(module(x, past), call)[0], x, call)


# --- hidden tests ---


from shared.oracles import hidden_kv_cache as hidden_oracles  # noqa: E402
from shared.oracles import modules  # noqa: E402


def both(problem, solution, weights, n_head, dtype=torch.float32):
    """Return the student's attention and the reference's, with the same weights."""
    weights = {name: weight.to(dtype) for name, weight in weights.items()}
    n_embd, bias = len(weights["c_proj.weight"]), "c_proj.bias" in weights
    right = modules.build(weights, solution.CachedAttention, n_embd, n_head, bias)
    return make_attention(problem, weights, n_head, dtype), right


def both_models(problem, solution, config, weights, dtype=torch.float32):
    """Return the student's model and the reference's, with the same weights."""
    weights = {name: weight.to(dtype) for name, weight in weights.items()}
    right = modules.build(weights, solution.CachedGPT, solution.GPTConfig(**config))
    return make_gpt(problem, config, weights, dtype), right


def random_cut(rng, length):
    """Return a random cut of a length into about eight pieces or fewer, as (first, last) pairs."""
    inside = torch.rand(length - 1, generator=rng.generator) < min(0.4, 8 / length)
    places = [0, *(1 + inside.nonzero().flatten()).tolist(), length]
    return list(itertools.pairwise(places))


@pytest.mark.points(0.5)
def test_hidden_cache_in_bytes(problem, solution, rng):
    """kv_cache_bytes is right for other sizes"""
    for draw in range(20):
        sizes = (1 + torch.randint(60, (5,), generator=rng.generator)).tolist()
        sizes[draw % 5] *= 1000
        expected, call = solution.kv_cache_bytes(*sizes), f"kv_cache_bytes{tuple(sizes)}"
        number = problem.kv_cache_bytes(*sizes)
        checks.check_that(number, oracles.is_number_of_bytes, call, expected)


@pytest.mark.points(3.25)
@pytest.mark.parametrize(
    ("n_past", "n_new", "batch", "n_embd", "n_head", "bias"),
    [
        (0, 6, 3, 20, 4, True),
        (7, 1, 2, 14, 2, False),
        (3, 5, 1, 15, 5, True),
        (1, 2, 4, 6, 1, False),
        (9, 4, 2, 8, 8, True),
        (140, 2, 1, 4, 2, False),
        (1200, 3, 1, 2, 1, True),
        (2, 70, 1, 4, 2, False),
        (2, 1, 300, 6, 3, True),
        (1, 2, 1, 140, 70, False),
    ],
)
def test_hidden_attention(problem, solution, rng, n_past, n_new, batch, n_embd, n_head, bias):
    """CachedAttention is right for other sizes, and so are all its gradients"""
    weights = attention_weights(rng, n_embd, bias=bias)
    x, past = rng.normal(batch, n_new, n_embd), None
    if n_past:
        past = random_past(rng, batch, n_head, n_past, n_embd // n_head)
    call = f"CachedAttention({n_embd}, {n_head}, bias={bias})(x, past) with {n_past} past and "
    call += f"{n_new} new tokens"
    check_alike(*both(problem, solution, weights, n_head), x, past, rng, call)


def check_alike(student, reference, x, past, rng, call):
    """Compare output, `present` and gradients of two attentions, then outputs without gradients."""
    actual, learning = results_and_leaves(student, x, past, call)
    output, present = checks.parts(reference(x, past), 2)
    expected = output, *checks.parts(present, 2)
    check_triple(actual, expected, call)
    upstream = [rng.normal(*each.shape, dtype=x.dtype) for each in actual]
    slopes = hidden_oracles.slopes(reference, x, past, upstream)
    total = sum((each * up).sum() for each, up in zip(actual, upstream, strict=True))
    text = f"output and present of {call}"
    gradients = checks.gradients(total, learning, torch.ones((), dtype=x.dtype), text)
    checks.check_gradients(gradients, slopes, text, **SLOPES)
    with torch.no_grad():
        turned = past and tuple(map(example.turned, past))
        y, present = unpack(student(example.turned(x), turned), call)
    text = f"{call}, transposed, under torch.no_grad()"
    check_triple((y, *pair(present, text)), expected, text)


def results_and_leaves(module, x, past, call):
    """Return an attention's (output, keys, values), and the tensors that need gradients by name."""
    leaves = {"x": x.clone().requires_grad_()}
    if past is not None:
        leaves["the past's keys"] = past[0].clone().requires_grad_()
        leaves["the past's values"] = past[1].clone().requires_grad_()
    x, *past = (leaf.clone() for leaf in leaves.values())
    output, present = unpack(module(x, tuple(past) or None), call)
    learning = {name: each for name, each in parameters(module).items() if each.requires_grad}
    return (output, *pair(present, call)), leaves | learning


def check_triple(actual, expected, call):
    """Compare outputs, keys and values."""
    checks.check(actual[0], expected[0], call)
    check_pair(actual[1:], expected[1:], call)


@pytest.mark.points(4.25)
@pytest.mark.parametrize(
    ("n_layer", "n_embd", "n_head", "bias", "length"),
    [(2, 12, 3, False, 13), (3, 10, 2, True, 13), (2, 8, 2, True, 130), (1, 12, 1, True, 300)],
)
def test_hidden_model(problem, solution, rng, n_layer, n_embd, n_head, bias, length):
    """CachedGPT is right for other sizes, in one pass and in chunks, with all its gradients"""
    config = {"vocab_size": 17, "n_positions": length, "n_layer": n_layer, "n_embd": n_embd}
    config |= {"n_head": n_head, "bias": bias, "dropout": 0.4}
    student, reference = both_models(problem, solution, config, weights_for(rng, config))
    idx = tokens(rng, 3, length, config)
    upstream = rng.normal(3, length, 17)
    expected, right, slopes = checks.parts(hidden_oracles.read(reference, idx, upstream), 3)
    for pieces in ([(0, length)], random_cut(rng, length)):
        sizes = [last - first for first, last in pieces]
        call = f"CachedGPT with {n_layer} layers, {length} tokens in chunks of {sizes}"
        outputs, past = [], None
        for first, last in pieces:
            logits, past = unpack(student(idx[:, first:last], past), call)
            checks.check(logits, expected[:, first:last], call, **NEAR)
            outputs.append(logits)
        pairs = zip(layers(past, n_layer, call), checks.parts(right, n_layer), strict=True)
        for number, (actual, each) in enumerate(pairs):
            check_pair(actual, each, f"layer {number} of {call}", **NEAR)
        logits = torch.cat(outputs, dim=1)
        gradients = checks.gradients(logits, parameters(student), upstream, call)
        checks.check_gradients(gradients, slopes, call, **SLOPES)


@pytest.mark.points(0.5)
def test_hidden_names(problem, solution, rng):
    """Weights under GPT-2's names can be loaded, and lm_head has the weight of wte"""
    weights = weights_for(rng, SMALL)
    student, reference = both_models(problem, solution, SMALL, weights)
    names, expected = sorted(student.state_dict()), sorted(weights)
    checks.require(set(expected) <= set(names), f"state_dict has {names}; expected {expected}.")
    student.load_state_dict(weights_for(rng, SMALL), strict=False)
    student.load_state_dict(weights, strict=False)
    idx = tokens(rng, 2, 5)
    call = "CachedGPT(config)(idx) with weights loaded by load_state_dict"
    expected = reference(idx)[0]
    checks.check(student(idx.clone())[0], expected, call, **NEAR)


@pytest.mark.points(0.5)
def test_hidden_generate_of_certain_tokens(problem, rng):
    """A large vocabulary has no end-of-text token, either"""
    config = {"vocab_size": 50_257, "n_positions": 6, "n_layer": 1, "n_embd": 2, "n_head": 1}
    weights = weights_for(rng, config)
    turns = torch.linspace(0, 1, config["vocab_size"])
    weights["transformer.ln_f.weight"][:] = 0  # so that the output of ln_f is its bias
    for token in (50_256, 0, 13, 198):
        kinds = torch.stack([turns.cos(), turns.sin()], dim=1)
        kinds[token] *= 1.5
        weights |= {"transformer.wte.weight": kinds, "lm_head.weight": kinds}
        weights["transformer.ln_f.bias"] = 9 * kinds[token]
        module = make_gpt(problem, config, weights)
        call = f"CachedGPT(config).generate(idx, 3), where {token} is always the most probable"
        prompt = torch.tensor([[5, 1]])
        expected = hidden_oracles.followed(prompt, token, 3)
        checks.check(module.generate(prompt, 3), expected, call)


@pytest.mark.points(1.75)
@pytest.mark.parametrize(
    ("batch", "length", "n_new", "n_layer", "bias"),
    [(5, 3, 8, 2, True), (2, 9, 5, 3, False), (4, 1, 9, 1, True), (6, 17, 6, 2, True)],
)
def test_hidden_generate(problem, solution, rng, batch, length, n_new, n_layer, bias):
    """generate is right for other sizes and reads each token once"""
    config = SMALL | {"n_positions": 23, "n_layer": n_layer, "bias": bias, "vocab_size": 29}
    student, reference = both_models(problem, solution, config, weights_for(rng, config))
    prompts = prepared_prompts(reference, rng, config, batch, length, n_new)
    texts = reference.generate(prompts.clone(), n_new)
    call = f"CachedGPT(config).generate(idx, {n_new}) with {len(prompts)} prompts of {length} "
    call += "tokens"
    with example.state_unchanged(call), counting() as cost:
        result = student.generate(prompts.clone(), n_new)
    checks.check(result, texts, call)
    check_total(cost.operations, config, length, n_new, "generate", len(prompts))
    check_read_once(student, result, cost.operations, call)
    checks.check(student.generate(prompts.clone(), n_new), texts, f"{call}, a second time")


def prepared_prompts(reference, rng, config, batch, length, n_new):
    """Return prompts for which the two largest logits always differ by more than CLEAR."""

    def make(numbers):
        while True:
            prompts = tokens(numbers, batch, length, config)
            texts = reference.generate(prompts, n_new)
            best = reference(texts)[0][:, length - 1 : -1].topk(2).values
            clear = (best[..., 0] - best[..., 1]).amin(-1) > CLEAR
            if clear.any():
                return prompts[clear]

    return checks.prepared(make, rng)


@pytest.mark.points(1.25)
@pytest.mark.parametrize("how", ["call", "generate"])
def test_hidden_cost(problem, rng, how):
    """One more token takes at most three times the necessary operations for another size, too"""
    config = COSTLY | {"n_embd": 24, "n_layer": 3, "vocab_size": 12}
    check_cost(problem, rng, config, how)
