"""Tests of problem 06. Run them with `uv run pytest` in this folder."""

import math
from functools import partial

import pytest
import torch
from torch import nn

from grader.code.tensors import parameters
from grader.run import checks
from grader.run.calls import answers
from shared import robust
from shared import worked_example as example
from shared.oracles import gpt as oracles
from shared.oracles import judges, modules
from shared.small_gpt import block_weights, mlp_weights, norm_weights, part

ALL_DIGITS = {"rtol": 1e-8, "atol": 1e-8}
"""Tolerances in float64, wide enough for a √(2/π) that is rounded to eight digits."""

ROUGHLY = {"rtol": 0.1, "atol": 0.1}
"""Tolerances for tests of the order of the parts. In a Block of WIDTH, a wrong constant in a part
has a smaller effect than this. Other tests check the parts."""

WIDTH = 48

BOTH_DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


# Modules with known weights.


def make(problem, name, weights, *arguments, **options):
    """Return the student's module of this class with these weights, after eval()."""
    options = {"bias": any("bias" in name for name in weights)} | options
    return example.load_weights(getattr(problem, name)(*arguments, **options), weights).eval()


def named(name, *arguments, **options):
    """Return the call that makes a module, as text."""
    parts = [*map(str, arguments), *(f"{option}={value}" for option, value in options.items())]
    return f"{name}({', '.join(parts)})"


def check_parameters(module, expected, call):
    """Require that a module has separate parameters of these names and shapes, and no others.

    A parameter may have a second name, for example because its layer is also in a list.
    """
    every = parameters(module)
    named = {name: every[name] for name in expected if name in every}
    ids = {id(weight) for weight in named.values()}
    more = [name for name, weight in every.items() if id(weight) not in ids]
    names = f"{sorted(every) or 'none'}; expected {sorted(expected)}, each a separate parameter"
    fits = len(ids) == len(expected) and not more
    checks.require(fits, f"{call}\nIts parameters are {names}.")
    for name, shape in expected.items():
        actual = tuple(named[name].shape)
        checks.require(actual == shape, f"{call}\n`{name}` has shape {actual}; expected {shape}.")
        message = f"{call}\n`{name}` can't learn: its requires_grad is False."
        checks.require(named[name].requires_grad, message)


# gelu


@pytest.mark.points(0.25)
def test_gelu_in_numbers(problem):
    """gelu of nine numbers from -3 to 3 is right"""
    x = torch.tensor([-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3])
    checks.check(problem.gelu(x.clone()), oracles.GELU_IN_NUMBERS, f"gelu(x) with x = {x.tolist()}")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (2, 3, 5), (1, 2, 2, 3)], ids=str)
def test_gelu_by_hand(problem, rng, shape):
    """gelu is right for each entry of a tensor of any shape"""
    x = rng.normal(math.prod(shape)).reshape(shape) * 2
    call = f"gelu(x) with x of shape {shape}"
    checks.check(problem.gelu(x.clone()), oracles.gelu(x), call)


@pytest.mark.points(0.25)
def test_gelu_with_tanh(problem):
    """gelu uses tanh, as in GPT-2; the GELU with the error function differs by up to 0.000473"""
    x = torch.linspace(-5, 5, 1001)
    call = "gelu(x) with 1001 numbers from -5 to 5"
    result = checks.check_form(problem.gelu(x.clone()), x, call)
    checks.check_that(result, oracles.has_tanh, call, x)


@pytest.mark.points(0.25)
def test_gelu_of_large_numbers(problem):
    """gelu is finite and right for positive and negative numbers up to 1e30"""
    sizes = torch.tensor([6, 12, 40, 300, 1e4, 1e8, 1e13, 1e20, 1e30])
    x = torch.cat([sizes, -sizes])
    call = "gelu(x) with numbers from 6 to 1e30 and from -6 to -1e30"
    checks.check(problem.gelu(x.clone()), oracles.gelu(x), call)


def check_slopes_of_output(actual, inputs, tensors, by_hand, upstream, call, rng):
    """Compare the gradients of an output with numerical slopes of the definition.

    The tolerances are wide, as each slope is a sum over all entries.

    Args:
        actual: the result of the student's code for `inputs`.
        inputs: the tensors that need gradients, by name: x, and the module's parameters.
        tensors: the same tensors by name, as the test made them.
        by_hand: the definition, a function that takes a dict of tensors and returns the output.
        upstream: the gradient with respect to the output.
        call: the call, as text.
        rng: draws the directions.
    """
    gradients = checks.gradients(actual, inputs, upstream, call)
    numbers = {name: tensor.detach().double() for name, tensor in tensors.items()}

    def value(moved):
        return (by_hand(numbers | moved) * upstream).sum()

    example.check_slopes(gradients, value, numbers, call, rng, rtol=1e-3, atol=1e-3)


def learned(module, weights):
    """Return those parameters of a module, by name, whose names occur in `weights`."""
    return {name: parameters(module)[name] for name in weights}


@pytest.mark.points(0.25)
def test_gelu_has_gradients(problem, rng):
    """Gradients of gelu are right"""
    x, upstream = (rng.normal(3, 4) * 2).requires_grad_(), rng.normal(3, 4)

    def by_hand(tensors):
        return oracles.gelu(tensors["x"])

    inputs, call = {"x": x}, "gelu(x) with x of shape (3, 4)"
    actual = problem.gelu(x.clone())
    check_slopes_of_output(actual, inputs, inputs, by_hand, upstream, call, rng)


@pytest.mark.points(0.25)
def test_gelu_has_gradients_of_large_numbers(problem):
    """For numbers up to 10,000, gradients of gelu are finite and right"""
    sizes = torch.tensor([12, 100, 3000, 1e4])
    x = torch.cat([sizes, -sizes]).requires_grad_()
    call = "gelu(x) with x = 12, 100, 3000, 10000 and their negatives"
    gradients = checks.gradients(problem.gelu(x.clone()), {"x": x}, torch.ones_like(x), call)
    expected = oracles.gelu_slopes_far_from_0(x)
    checks.check(gradients["x"], expected, f"the gradient of {call} with respect to x")


# LayerNorm


@pytest.mark.points(0.5)
def test_layer_norm_parameters(problem):
    """A new LayerNorm has a weight of ones and a bias of zeros, or no bias with bias=False"""
    module, call = problem.LayerNorm(6), "LayerNorm(6)"
    check_parameters(module, {"weight": (6,), "bias": (6,)}, call)
    checks.check(parameters(module)["weight"], oracles.ones(6), f"the weight of {call}")
    checks.check(parameters(module)["bias"], oracles.zeros(6), f"the bias of {call}")
    module, call = problem.LayerNorm(5, bias=False), "LayerNorm(5, bias=False)"
    check_parameters(module, {"weight": (5,)}, call)
    checks.check(parameters(module)["weight"], oracles.ones(5), f"the weight of {call}")
    message = f"{call} has no attribute `bias`. Set it to None."
    checks.require(hasattr(module, "bias"), message)
    checks.require(module.bias is None, f"{call} has a bias; it should be None.")


@pytest.mark.points(0.25)
def test_layer_norm_in_numbers(problem):
    """LayerNorm of 1, 2, 3, 4 and of 101, 102, 103, 104 gives the README's numbers"""
    x = torch.tensor([[[1.0, 2, 3, 4], [101, 102, 103, 104]]])
    plain = oracles.NORM_IN_NUMBERS.expand(1, 2, 4)
    call = f"LayerNorm(4)(x) with x = {x.tolist()}"
    checks.check(problem.LayerNorm(4)(x.clone()), plain, call)
    weights = {"weight": torch.tensor([1.0, 2, 3, 4]), "bias": torch.tensor([0.0, 0, 1, -1])}
    module = make(problem, "LayerNorm", weights, 4)
    expected = plain * weights["weight"] + weights["bias"]
    call = f"{call}, weight = [1, 2, 3, 4] and bias = [0, 0, 1, -1]"
    checks.check(module(x.clone()), expected, call)


SHAPES = [(6,), (4, 5), (2, 3, 4), (3, 3, 3), (2, 1, 3, 7), (5, 5, 5)]


@pytest.mark.points(0.75)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_norm_by_hand(problem, rng, shape, bias):
    """LayerNorm normalises each row (last dimension) separately, for inputs of any shape"""
    weights = norm_weights(rng, shape[-1], bias=bias)
    x = rng.normal(*shape) * 3 + rng.normal(*shape[:-1], 1)
    module = make(problem, "LayerNorm", weights, shape[-1])
    call = f"{named('LayerNorm', shape[-1], bias=bias)}(x) with x of shape {shape}"
    checks.check(module(x.clone()), oracles.layer_norm(x, weights), call)


def spread_rows(rng, *shape):
    """Return rows with variance 1 and different means near 0, in float64."""
    x, means = (rng.normal(*s, dtype=torch.float64) for s in (shape, (*shape[:-1], 1)))
    return (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True) + means


@pytest.mark.points(0.5)
@pytest.mark.parametrize("options", [{}, {"eps": 1e-5}, {"eps": 0}, {"eps": 0.3}], ids=str)
def test_layer_norm_of_nearly_constant_rows(problem, rng, options):
    """eps is added to the variance, inside the root; its default is 0.00001"""
    x, weights = (spread_rows(rng, 2, 3, 8) / 1000).float(), norm_weights(rng, 8)
    module = make(problem, "LayerNorm", weights, 8, **options)
    call = f"{named('LayerNorm', 8, **options)}(x) with rows whose variance is 0.000001"
    checks.check(module(x.clone()), oracles.layer_norm(x, weights, **options), call)


def far_rows(rng, *shape, dtype):
    """Return rows with mean 10,000 and variance 1, and the output of a new LayerNorm for them."""
    x = (spread_rows(rng, *shape) + 1e4).to(dtype)
    return x, oracles.layer_norm(x, {"weight": torch.ones(shape[-1])})


@pytest.mark.points(0.25)
@BOTH_DTYPES
def test_layer_norm_of_rows_far_from_zero(problem, rng, dtype):
    """LayerNorm is right for rows with mean 10,000 and variance 1"""
    x, expected = far_rows(rng, 2, 3, 8, dtype=dtype)
    module = problem.LayerNorm(8).to(dtype)
    call = f"LayerNorm(8)(x) in {str(dtype).removeprefix('torch.')} with rows around 10,000"
    atol = 2e-2 if dtype == torch.float32 else 1e-7
    checks.check(module(x.clone()), expected, call, rtol=0, atol=atol)


@pytest.mark.points(0.25)
def test_layer_norm_of_constant_rows(problem, rng):
    """For a row of equal entries, the output is the bias, and gradients are finite"""
    weights = norm_weights(rng, 8)
    module = make(problem, "LayerNorm", weights, 8)
    x = torch.tensor([[3.0, 0], [-1, 7]])[:, :, None].repeat(1, 1, 8).requires_grad_()
    call = "LayerNorm(8)(x) with x of shape (2, 2, 8), whose rows are all 3, 0, -1 and 7"
    output = module(x.clone())
    checks.check(output, oracles.layer_norm(x, weights), call)
    upstream = rng.normal(2, 2, 8)
    gradients = checks.gradients(output, {"x": x} | parameters(module), upstream, call)
    for name, gradient in gradients.items():
        finite = bool(gradient.isfinite().all())
        message = f"{call}\nIts gradient with respect to {name} has entries inf or NaN."
        checks.require(finite, message)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_layer_norm_has_gradients(problem, rng, bias):
    """Gradients flow to x, weight and bias, also through mean and variance"""
    weights, x = norm_weights(rng, 5, bias=bias), (rng.normal(2, 2, 5) * 2).requires_grad_()
    module, upstream = make(problem, "LayerNorm", weights, 5), rng.normal(2, 2, 5)

    def by_hand(tensors):
        return oracles.layer_norm(tensors["x"], tensors)

    call = f"{named('LayerNorm', 5, bias=bias)}(x) with x of shape (2, 2, 5)"
    actual = module(x.clone())
    checks.check(actual, oracles.layer_norm(x, weights), call)  # a wrong output has wrong gradients
    inputs = {"x": x} | learned(module, weights)
    check_slopes_of_output(actual, inputs, {"x": x} | weights, by_hand, upstream, call, rng)


# MLP


@pytest.mark.points(0.25)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_mlp_layers(problem, dropout, bias):
    """MLP has c_fc (n_embd to 4 * n_embd), c_proj (4 * n_embd to n_embd) and dropout"""
    module = problem.MLP(6, dropout=dropout, bias=bias)
    call = named("MLP", 6, dropout=dropout, bias=bias)
    checks.check_layer(module, "c_fc", 6, 24, bias=bias)
    checks.check_layer(module, "c_proj", 24, 6, bias=bias)
    child = getattr(module, "dropout", None)
    message = f"`dropout` of {call} should be nn.Dropout({dropout}); it is"
    is_dropout = isinstance(child, nn.Dropout)
    checks.require(is_dropout, f"{message} of type {type(child).__name__}.")
    checks.require(child.p == dropout, f"{message} nn.Dropout({child.p}).")
    check_parameters(module, shapes(mlp_weights, 6, bias), call)


def shapes(weights, n_embd, bias):
    """Return the names and shapes of the tensors that `weights`, such as mlp_weights, returns."""
    made = weights(_Zeros(), n_embd, bias=bias)
    return {name: tuple(weight.shape) for name, weight in made.items()}


class _Zeros:
    """A replacement for `rng` that returns zeros, where only shapes matter."""

    def normal(self, *shape):
        return torch.zeros(shape)


@pytest.mark.points(1)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 2, 5), (1, 1, 6), (4, 5, 1)], ids=str)
def test_mlp_by_hand(problem, rng, shape, bias):
    """MLP applies c_fc, gelu and c_proj, in this order, to each token separately"""
    weights, x = mlp_weights(rng, shape[-1], bias=bias), rng.normal(*shape)
    module = make(problem, "MLP", weights, shape[-1])
    call = f"{named('MLP', shape[-1], bias=bias)}(x) with x of shape {shape}"
    checks.check(module(x.clone()), oracles.mlp(x, weights), call, **ROUGHLY)


@pytest.mark.points(0.5)
def test_mlp_dropout(problem, rng):
    """In training, entries of the MLP's output are dropped at random, and the rest is scaled up"""
    weights, x = mlp_weights(rng, 6), rng.normal(1, 5, 6)
    whole = oracles.mlp(x, weights)
    module = make(problem, "MLP", weights, 6, dropout=0.25)
    checks.check(module(x.clone()), whole, f"{named('MLP', 6, dropout=0.25)}.eval()(x)", **ROUGHLY)
    call = f"{named('MLP', 6, dropout=0.25)}(x) in training"
    outputs = {}
    for name, seed in [("first", 1), ("again", 1), ("other", 2), ("next", None)]:
        if seed is not None:
            torch.default_generator.manual_seed(seed)
        outputs[name] = checks.check_form(
            module.train()(x.repeat(150, 1, 1)), x.expand(150, -1, -1), call
        )
    whole, what = whole.expand(150, -1, -1), "the entries of the MLP's output"
    checks.check_that(outputs["first"], judges.drops_entries, call, whole, 0.25, what, ROUGHLY)
    for one, two in [("first", "other"), ("other", "next")]:
        different = not torch.equal(outputs[one], outputs[two])
        message = f"{call}\nTwo calls dropped the same entries; each should drop different ones."
        checks.require(different, message)
    again = f"{call}, a second time after torch.manual_seed(1)"
    checks.check_same(outputs["again"], outputs["first"], again)


# Block


@pytest.mark.points(0.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("n_embd", [4, 6])
def test_block_parts(problem, n_embd, bias):
    """Block has the parts ln_1, attn, ln_2 and mlp: 12 C² + 13 C parameters, if it has biases"""
    module, call = problem.Block(n_embd, 2, bias=bias), named("Block", n_embd, 2, bias=bias)
    check_parameters(module, shapes(block_weights, n_embd, bias), call)
    total = sum(weight.numel() for weight in module.parameters())
    checks.check_that(total, oracles.is_size_of_block, call, n_embd, bias)
    for name, weight in parameters(module).items():
        if weight.dim() == 2:
            message = f"All numbers of `{name}` are equal; a new linear layer has random weights."
            checks.require(weight.unique().numel() > 1, f"{call}\n{message}")


def without(weights, *names):
    """Return the weights with zeros for c_proj of these parts, so that the parts return 0."""
    silent = tuple(f"{name}.c_proj." for name in names)
    return {
        name: torch.zeros_like(weight) if name.startswith(silent) else weight
        for name, weight in weights.items()
    }


@pytest.mark.points(0.25)
def test_block_that_adds_nothing(problem, rng):
    """If both c_proj are 0, a Block returns x"""
    weights, x = without(block_weights(rng, 6), "attn", "mlp"), rng.normal(2, 4, 6)
    module = make(problem, "Block", weights, 6, 2)
    call = f"{named('Block', 6, 2)}(x) with x of shape (2, 4, 6), where both c_proj are 0"
    checks.check(module(x.clone()), oracles.block(x, weights, 2), call)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("silent", ["mlp", "attn"])
def test_half_a_block(problem, rng, silent):
    """If c_proj of one half is 0, a Block returns x + attn(ln_1(x)) or x + mlp(ln_2(x))"""
    weights, x = without(block_weights(rng, WIDTH), silent), rng.normal(2, 4, WIDTH)
    module = make(problem, "Block", weights, WIDTH, 2)
    call = f"{named('Block', WIDTH, 2)}(x) with x of shape {tuple(x.shape)}, where {silent}.c_proj "
    call += "is 0"
    checks.check(module(x.clone()), oracles.block(x, weights, 2), call, **ROUGHLY, start=x)


@pytest.mark.points(4)
@pytest.mark.parametrize(
    ("batch", "seq_len", "n_embd", "n_head", "bias"),
    [
        (2, 4, WIDTH, 2, True),
        (1, 1, WIDTH, 4, True),
        (3, 5, 50, 1, True),
        (3, 3, 51, 3, True),
        (2, 5, 51, 3, False),
    ],
)
def test_block_by_hand(problem, rng, batch, seq_len, n_embd, n_head, bias):
    """Block returns h + mlp(ln_2(h)) for h = x + attn(ln_1(x))"""
    weights, x = block_weights(rng, n_embd, bias=bias), rng.normal(batch, seq_len, n_embd)
    module = make(problem, "Block", weights, n_embd, n_head)
    call = f"{named('Block', n_embd, n_head, bias=bias)}(x) with x of shape {tuple(x.shape)}"
    checks.check(module(x.clone()), oracles.block(x, weights, n_head), call, **ROUGHLY, start=x)


DROPPING_CALLS = 5
"""The number of calls of a Block in training, each with a part of the batch."""


def check_block_dropout(problem, rng, n_embd, n_head, rate, batch):
    """Require that both halves of a Block drop entries of their output, and nothing else."""
    weights, x = block_weights(rng, n_embd), rng.normal(1, 5, n_embd)
    # The attention's output is the bias of c_proj, so it does not depend on dropped weights.
    weights["attn.c_proj.weight"] = torch.zeros(n_embd, n_embd)
    call = f"{named('Block', n_embd, n_head, dropout=rate)}(x) in training"
    for half, silent in [("attn", "mlp"), ("mlp", "attn")]:
        half_weights = without(weights, silent)
        whole = oracles.block(x, half_weights, n_head) - x
        module = make(problem, "Block", half_weights, n_embd, n_head, dropout=rate).train()
        # Several calls, as each should drop different entries.
        many = x.repeat(batch // DROPPING_CALLS, 1, 1)
        calls = [(many.clone(),) for _ in range(DROPPING_CALLS)]
        several = answers(module, calls, seeds=range(DROPPING_CALLS))
        output = torch.cat([checks.check_form(each, many, call) for each in several])
        checks.check_that(
            output, judges.drops_what_is_added, call, x, whole, rate, half, silent, ROUGHLY
        )
    check_attention_reads_all(problem, rng, n_embd, rate, batch)


def check_attention_reads_all(problem, rng, n_embd, rate, batch):
    """Require that a Block drops no entries of the attention's input.

    A single token has one weight, which dropout keeps or drops. So the attention's output is
    complete or 0. If entries of the input were dropped, the output would have other values.
    """
    weights, x = without(block_weights(rng, n_embd), "mlp"), rng.normal(1, 1, n_embd)
    weights["attn.c_proj.bias"] = torch.zeros(n_embd)
    module = make(problem, "Block", weights, n_embd, 1, dropout=rate).train()
    whole = (oracles.block(x, weights, 1) - x) / (1 - rate) ** 2
    call = f"{named('Block', n_embd, 1, dropout=rate)}(x) in training, for x of a single token"
    many = x.repeat(batch, 1, 1)
    output = checks.check_form(module(many.clone()), many, call)
    checks.check_that(output, judges.adds_all_or_nothing, call, x, whole, ROUGHLY)


@pytest.mark.points(0.5)
def test_block_dropout(problem, rng):
    """In training, only entries that attn and mlp add to x are dropped, at random"""
    check_block_dropout(problem, rng, WIDTH, 2, 0.25, 150)


@pytest.mark.points(0.5)
def test_no_dropout_in_evaluation(problem, rng):
    """After eval(), and with dropout=0.0 also in training, nothing is dropped"""
    weights, x = block_weights(rng, WIDTH), rng.normal(2, 4, WIDTH)
    expected = oracles.block(x, weights, 2)
    module = make(problem, "Block", weights, WIDTH, 2, dropout=0.0).train()
    shape = f"x of shape {tuple(x.shape)}"
    call = f"{named('Block', WIDTH, 2)}.train()(x) with {shape}"
    checks.check(module(x.clone()), expected, call, **ROUGHLY)
    module = make(problem, "Block", weights, WIDTH, 2, dropout=0.6).eval()
    call = f"{named('Block', WIDTH, 2, dropout=0.6)}.eval()(x) with {shape}"
    checks.check(module(x.clone()), expected, call, **ROUGHLY)


# Tests of all parts


@pytest.mark.points(0.25)
def test_defaults(problem, rng):
    """Block() has GPT-2's sizes: 7,087,872 parameters, 12 heads, no dropout, biases"""
    module = problem.Block()
    check_parameters(module, shapes(block_weights, 768, True), "Block()")
    total = sum(weight.numel() for weight in module.parameters())
    checks.check_that(total, oracles.is_size_of_block, "Block()", 768, True)
    weights, x = block_weights(rng, WIDTH), rng.normal(1, 3, WIDTH)
    module = example.load_weights(problem.Block(WIDTH), weights).train()
    expected = oracles.block(x, weights, 12)
    call = f"Block({WIDTH}).train()(x), which has 12 heads and no dropout"
    checks.check(module(x.clone()), expected, call, **ROUGHLY)
    weights, x = part(weights, "mlp"), x * 2
    module = example.load_weights(problem.MLP(WIDTH), weights).train()
    call = f"MLP({WIDTH}).train()(x), which has biases and no dropout"
    checks.check(module(x.clone()), oracles.mlp(x, weights), call, **ROUGHLY)


@pytest.mark.points(0.25)
def test_names_and_positions(problem, rng):
    """All arguments can be passed by name or by position, in the order of the docstrings"""
    x = rng.normal(1, 3, WIDTH)
    checks.check(problem.gelu(x=x.clone()), oracles.gelu(x), "gelu(x=x)")
    for name, options, draw, definition, *arguments in [
        ("LayerNorm", {"bias": False, "eps": 0.5}, norm_weights, oracles.layer_norm, 0.5),
        ("MLP", {"dropout": 0.25, "bias": False}, mlp_weights, oracles.mlp),
        ("Block", {"n_head": 3, "dropout": 0.25, "bias": False}, block_weights, oracles.block, 3),
    ]:
        weights, by_name = draw(rng, WIDTH, bias=False), dict(reversed(options.items()))
        right = definition(x, weights, *arguments)
        for positions, names in [
            ((WIDTH, *options.values()), {}),
            ((), by_name | {"n_embd": WIDTH}),
        ]:
            call, module = named(name, *positions, **names), getattr(problem, name)
            module = module(*positions, **names)
            check_parameters(module, shapes(draw, WIDTH, False), call)
            actual = example.load_weights(module, weights).eval()(x.clone())
            checks.check(actual, right, f"{call}.eval()(x)", **(ROUGHLY if name == "Block" else {}))


def in_dtype(weights, dtype):
    """Return the weights in another dtype."""
    return {name: weight.to(dtype) for name, weight in weights.items()}


MODULES = {
    "LayerNorm": (norm_weights, oracles.layer_norm, ()),
    "MLP": (mlp_weights, oracles.mlp, ()),
    "Block": (block_weights, oracles.block, (2,)),
}
"""The keys are the names of classes. The values are triples: a function that returns random
weights, the oracle, and the arguments after n_embd."""


def call_of(problem, rng, name, batch=2, seq_len=4, dtype=torch.float32):
    """Return a `robust.Call` of gelu, or of a module with random weights."""
    x = rng.normal(batch, seq_len, WIDTH, dtype=dtype)
    near = ALL_DIGITS if dtype == torch.float64 else ROUGHLY
    if name == "gelu":
        return robust.Call("gelu(x)", problem.gelu, {"x": x}, oracles.gelu, near=near)
    draw, definition, arguments = MODULES[name]
    weights = in_dtype(draw(rng, WIDTH), dtype)
    module, call = make(problem, name, weights, WIDTH, *arguments), named(name, WIDTH, *arguments)

    def right(x):
        return definition(x, weights, *arguments)

    return robust.Call(f"{call}(x)", module, {"x": x}, right, weights=weights, near=near)


@pytest.mark.points(1.25)
@robust.parts("float32", "float64", "sizes of one", *robust.KEPT)
@pytest.mark.parametrize("name", ["gelu", *MODULES])
def test_in_use(problem, rng, name, part):
    """gelu and the modules follow the rules for all problems"""
    sizes, other = "batch seq_len", {"batch": 3, "seq_len": 2}
    robust.check_part(part, rng, partial(call_of, problem, rng, name), sizes=sizes, other=other)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("name", ["MLP", "Block"])
def test_gradients_flow(problem, rng, name):
    """Gradients of MLP and Block flow to the input and to all weights and biases"""
    draw, by_hand, heads = MODULES[name]
    weights = draw(rng, 4)
    x, upstream = rng.normal(1, 3, 4).requires_grad_(), rng.normal(1, 3, 4)
    module = make(problem, name, weights, 4, *heads)
    call = f"{named(name, 4, *heads)}(x) with x of shape (1, 3, 4)"

    def output(tensors):
        return by_hand(tensors["x"], tensors, *heads)

    actual = module(x.clone())
    checks.check(actual, output({"x": x} | weights), call)
    inputs = {"x": x} | learned(module, weights)
    check_slopes_of_output(actual, inputs, {"x": x} | weights, output, upstream, call, rng)


@pytest.mark.points(0.25)
def test_no_seed_is_set(problem, rng):
    """Linear layers start from random weights, and evaluation does not change the random state"""
    names = ("c_fc", "c_proj")
    example.check_random_start(
        partial(problem.MLP, 6, dropout=0.3), names, named("MLP", 6, dropout=0.3)
    )
    call = f"{named('Block', 6, 2, dropout=0.3)}.eval()(x)"
    module, x = problem.Block(6, 2, dropout=0.3).eval(), rng.normal(2, 3, 6)
    with example.state_unchanged(call):
        checks.check_form(module(x.clone()), x, call)


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_all_is_your_own(problem, rng):
    """All parts are written without PyTorch's gelu, norms and transformer layers"""
    x = rng.normal(2, 3, 4)
    checks.check_form(problem.gelu(x.clone()), x, "gelu(x)")
    for module in (problem.LayerNorm(4), problem.MLP(4, dropout=0.1), problem.Block(4, 2)):
        checks.check_form(module.train()(x.clone()), x, f"{type(module).__name__}(4).train()(x)")
        checks.check_form(module.eval()(x.clone()), x, f"{type(module).__name__}(4).eval()(x)")


# --- hidden tests ---


from shared.oracles import hidden_transformer_block as hidden_judges  # noqa: E402


def make_right(solution, name, weights, *arguments, **options):
    """Return the reference's module of this class with these weights, after eval()."""
    options = {"bias": any("bias" in name for name in weights)} | options
    return modules.build(weights, getattr(solution, name), *arguments, **options).eval()


def both(problem, solution, name, weights, *arguments, **options):
    """Return the student's module and the reference's, with the same weights."""
    return (
        make(problem, name, weights, *arguments, **options),
        make_right(solution, name, weights, *arguments, **options),
    )


def check_alike(student, reference, x, rng, call, *, digits=False, argument=torch.clone):
    """Compare outputs and all gradients of a student's module or function with the reference.

    The tolerance of a gradient is a small part of its largest entry. A small entry may be a sum of
    large terms that cancel each other, and then it contains the rounding errors of these terms.
    """
    x = x.clone().requires_grad_()
    actual, expected = student(argument(x)), reference(x)
    near, part = (ALL_DIGITS, 1e-9) if digits else ({"rtol": 1e-4, "atol": 3e-5}, 1e-4)
    checks.check(actual, expected, call, **near)
    upstream = rng.normal(x.numel(), dtype=x.dtype).reshape(x.shape)
    learns, right = {"x": x}, modules.gradients(expected, {"x": x}, upstream)
    if isinstance(student, nn.Module):
        learns |= parameters(student)
        right = modules.slopes(reference, x, upstream)
    gradients = checks.gradients(actual, learns, upstream, call)
    checks.check_that(gradients, hidden_judges.has_gradients, call, right, near, part)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("size", [0.3, 2.0, 6.0, 3000.0])
def test_hidden_gelu(problem, solution, rng, size):
    """gelu is right for other shapes and sizes of numbers, and so are its gradients"""
    for shape in [(), (1,), (50,), (4, 1, 6), (2, 3, 2, 2, 2), (300, 1, 2)]:
        x = rng.normal(math.prod(shape)).reshape(shape) * size
        call = f"gelu(x) with numbers of size {size:g} and x of shape {shape}"
        check_alike(problem.gelu, solution.gelu, x, rng, call, argument=example.turned)


NORM_SHAPES = [
    *((9,), (1, 4), (2, 5, 4), (4, 4, 4), (2, 7, 20), (3, 1, 2, 6), (40, 64), (1, 2, 1100)),
    *((1, 130, 6), (300, 1, 6), (2, 3, 1)),
]


@pytest.mark.points(1.75)
@pytest.mark.parametrize(
    ("eps", "size", "bias"),
    [(1e-5, 1, True), (0.02, 0.3, True), (1e-8, 50, True), (1e-5, 1, False)],
)
def test_hidden_layer_norm(problem, solution, rng, eps, size, bias):
    """LayerNorm is right for other sizes and values of eps, and so are all its gradients"""
    for shape in NORM_SHAPES:
        weights = norm_weights(rng, shape[-1], bias=bias)
        student, reference = both(problem, solution, "LayerNorm", weights, shape[-1], eps=eps)
        x = rng.normal(*shape) * size + rng.normal(*shape[:-1], 1)
        call = f"{named('LayerNorm', shape[-1], bias=bias, eps=eps)}(x) with x of shape {shape}"
        check_alike(student, reference, x, rng, call, argument=example.turned)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize(
    "shape", [(1, 6, 3), (5, 1, 8), (2, 9, 12), (1, 130, 2), (300, 2, 3), (1, 2, 130)], ids=str
)
def test_hidden_mlp(problem, solution, rng, shape, bias):
    """MLP is right for other sizes, and so are all its gradients"""
    weights = mlp_weights(rng, shape[-1], bias=bias)
    pair = both(problem, solution, "MLP", weights, shape[-1])
    call = f"{named('MLP', shape[-1], bias=bias)}(x) with x of shape {shape}"
    check_alike(*pair, rng.normal(*shape) * 2, rng, call, argument=example.turned)


@pytest.mark.points(4.5)
@pytest.mark.parametrize(
    ("sizes", "bias"),
    [
        ((2, 7, 80, 4), True),
        ((5, 2, 63, 9), True),
        ((1, 12, 64, 2), True),
        ((300, 2, 60, 3), True),
        ((1, 130, 50, 1), True),
        ((2, 9, 63, 9), False),
    ],
)
def test_hidden_block(problem, solution, rng, sizes, bias):
    """The parts of Block have the right order for other sizes, in training and in evaluation"""
    *shape, n_head = sizes
    weights, x = block_weights(rng, shape[-1], bias=bias), rng.normal(*shape) * 2 + 1
    student, reference = both(problem, solution, "Block", weights, shape[-1], n_head)
    student.train(bias)  # Without dropout, train() and eval() are the same.
    call = f"{named('Block', shape[-1], n_head, bias=bias)}(x) with x of shape {tuple(shape)}"
    checks.check(student(example.turned(x)), reference(x), call, **ROUGHLY)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("sizes", "bias"),
    [
        ((2, 7, 20, 4), True),
        ((5, 2, 9, 3), False),
        ((1, 12, 16, 2), True),
        ((4, 1, 5, 5), True),
        ((1, 130, 12, 2), True),
        ((300, 2, 12, 3), True),
        ((2, 3, 1, 1), True),
        ((1, 2, 130, 2), True),
    ],
    ids=str,
)
def test_hidden_block_gradients(problem, solution, rng, sizes, bias):
    """Outputs and all gradients of Block are right for other, smaller widths"""
    *shape, n_head = sizes
    weights, x = block_weights(rng, shape[-1], bias=bias), rng.normal(*shape) * 2 + 1
    pair = both(problem, solution, "Block", weights, shape[-1], n_head)
    call = f"{named('Block', shape[-1], n_head, bias=bias)}(x) with x of shape {tuple(shape)}"
    check_alike(*pair, x, rng, call, argument=example.turned)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("name", MODULES)
def test_hidden_precision(problem, solution, rng, name):
    """Outputs and gradients keep all digits of float64, also for large numbers"""
    draw, _, arguments = MODULES[name]
    x, call = rng.normal(2, 5, 6, dtype=torch.float64) * 2, f"{named(name, 6, *arguments)}(x)"
    weights = in_dtype(draw(rng, 6), torch.float64)
    student, reference = both(problem, solution, name, weights, 6, *arguments)
    check_alike(problem.gelu, solution.gelu, x, rng, "gelu(x) in float64", digits=True)
    check_alike(student, reference, x, rng, f"{call} in float64", digits=True)
    large = f"{call} in float64 with numbers near a million"
    checks.check(student(1e6 * x), reference(1e6 * x), large, atol=1e-2)


@pytest.mark.points(0.75)
@pytest.mark.parametrize(("n_embd", "n_head", "rate"), [(40, 1, 0.5), (45, 3, 0.1)])
def test_hidden_dropout(problem, solution, rng, n_embd, n_head, rate):
    """In training, only entries that attn and mlp add are dropped, for other sizes and rates too"""
    check_block_dropout(problem, rng, n_embd, n_head, rate, 400)
    weights, x = block_weights(rng, n_embd), rng.normal(3, 6, n_embd)
    student, reference = both(problem, solution, "Block", weights, n_embd, n_head, dropout=rate)
    call = f"{named('Block', n_embd, n_head, dropout=rate)}"
    with example.state_unchanged(f"{call}.eval()(x)"):
        output = student(x.clone())
    checks.check(output, reference(x), f"{call}.eval()(x)", **ROUGHLY)
    student.train()(x.clone())
    again = student.eval()(x.clone())
    checks.check(again, reference(x), f"{call}.eval()(x) after training", **ROUGHLY)
    mlp = make(problem, "MLP", mlp_weights(rng, 4), 4, dropout=0.5).train()
    check_counts_vary(mlp, rng.normal(1, 2, 4))
    check_gradients_in_training(problem, rng, "Block", weights, x, n_embd, n_head, dropout=rate)
    small = rng.normal(3, 6, 4)
    check_gradients_in_training(problem, rng, "MLP", mlp_weights(rng, 4), small, 4, dropout=0.5)


def check_gradients_in_training(problem, rng, name, weights, x, *sizes, dropout):
    """Require that gradients in training flow only through entries that are not dropped."""
    weights = in_dtype(weights, torch.float64)
    module = make(problem, name, weights, *sizes, dropout=dropout).train()
    call = f"{named(name, *sizes, dropout=dropout)}(x) in training"
    example.check_gradients_with_dropout(module, weights, x.double(), call, rng)


@torch.no_grad()
def check_counts_vary(mlp, x):
    """Require that an MLP(4, dropout=0.5) drops a varying number of 8 entries."""
    outputs = answers(mlp, [(x.clone(),) for _ in range(30)], seeds=range(30))
    call = f"{named('MLP', 4, dropout=0.5)}(x) in training, under torch.no_grad()"
    counts = {int((checks.check_form(output, x, call).abs() < 1e-9).sum()) for output in outputs}
    message = f"In each of 30 calls it dropped {min(counts)} of 8 entries. Each entry should be "
    message += "dropped independently."
    checks.require(len(counts) > 1, f"{call}\n{message}")
