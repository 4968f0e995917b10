"""Define the inputs of the worked example, and checks for the tests of all problems."""

import math
from contextlib import contextmanager

import torch

from grader.code.forbidden import ForbiddenCall
from grader.code.tensors import parameters
from grader.errors import CannotLoad, InternalError, Mismatch
from grader.run import compare
from grader.run.calls import answers, seconds
from grader.run.checks import (
    check,
    check_gradients,
    check_layer,
    check_same,
    check_that,
    gradients,
    require,
    set_weights,
)
from shared.oracles import judges, modules

# The worked example: queries, keys and values of four positions, with eight entries each.


def table(text):
    """Convert a text with a row of numbers in each line to a tensor."""
    rows = [[float(number) for number in line.split()] for line in text.strip().splitlines()]
    return torch.tensor(rows)


Q = table("""
     1.16797418 -0.73724956  0.75041732 -0.12204190  1.70315355  0.31347885  0.34485802  0.44609840
     3.30107262  0.52084263 -0.30178335  1.67578430 -0.51553690 -2.57282086  0.74921960 -0.11167390
     1.79346332  1.43356091  1.04335097 -0.17879843  0.64886601 -1.36614847  0.23380491  0.87536806
     1.47103375 -1.58489204 -0.45911092  0.28391595  0.21250504 -1.61590866 -1.29484902  0.00475083
""")
K = table("""
    -0.27718816 -1.65065268  0.65895024 -0.30877976  0.08718337 -1.25869869 -0.18955500  0.19835477
     0.34020432  0.52734301  0.70054018  0.02666352 -0.47575991  0.27451574  0.31178952 -0.80116187
    -0.32764932 -0.14549352 -0.40258405  0.75537362  1.05953459 -1.34530308  1.99241804  0.17674986
    -1.40543092  0.43389184 -0.07028518  0.10003431  1.26343057 -2.07078610  0.51659185 -1.03069964
""")
V = table("""
    -1.20455614 -0.78141984 -0.60550966 -0.49607676  0.05358656  0.31648808  1.97222775  0.97455048
    -0.22988732 -2.35853750  0.49206019 -0.74539263 -0.53048500 -0.23619713  0.80175571  0.96790588
    -1.20769139 -1.33242785 -1.59215534  2.60984511  0.33729297  0.46552584  1.51418349  0.72913429
     0.59369240 -0.63057290 -0.95026899  0.87634056 -1.56283632  0.30993470 -0.36928654  1.27842660
""")


# Modules with given weights

LAYERS = ("query", "key", "value")


def check_slopes(gradients, value, numbers, call, rng, compare=check, rtol=1e-4, atol=1e-5):
    """Compare gradients with numerical derivatives along a random direction per tensor.

    Args:
        gradients: the gradients, by the names of tensors.
        value: computes the number to differentiate. Its argument is a dict with one tensor, which
            replaces the tensor of the same name in `numbers`.
        numbers: the tensors at which the gradients were computed, by name.
        call: the call, as text.
        rng: the generator of the directions.
        compare: `check_same` if `value` calls the student's code, otherwise `check`.
        rtol: the relative tolerance.
        atol: the absolute tolerance.
    """
    for name, tensor in numbers.items():
        direction = rng.normal(*tensor.shape, dtype=torch.float64)

        def moved(step, name=name, tensor=tensor, direction=direction):
            return value({name: tensor.detach().double() + step * direction})

        what = f"the gradient of {call} with respect to {name}, times a random direction"
        along = (gradients[name].double() * direction).sum()
        compare(along, derivative(moved), what, rtol=rtol, atol=atol)


def check_gradients_with_dropout(module, weights, x, call, rng, seed=5):
    """Require correct gradients of a module with dropout in training mode.

    With the same seed, each call drops the same entries. So the expected gradients are numerical
    derivatives of the module's own outputs. The weights and x must be in float64.
    """
    upstream = rng.normal(*x.shape, dtype=torch.float64)

    def output(x, weights):
        set_weights(module, weights)
        torch.default_generator.manual_seed(seed)
        return module(x)

    def value(moved):
        others = {name: moved.get(name, weight) for name, weight in weights.items()}
        return (output(moved.get("x", x), others).detach() * upstream).sum()

    inputs = {"x": x.clone().requires_grad_()}
    actual = output(inputs["x"], weights)
    slopes = gradients(actual, inputs | parameters(module), upstream, call)
    call = f"{call}, when the same seed drops the same numbers each time,"
    check_slopes(slopes, value, {"x": x} | weights, call, rng, compare=check_same)


def derivative(value):
    """Return the numerical derivative of value(step) at step 0, with a five-point stencil.

    The error shrinks with the fourth power of the step size. A three-point stencil is not exact
    enough for LayerNorm of a nearly constant row.
    """
    one, two = (value(step) - value(-step) for step in (1e-5, 2e-5))
    return (8 * one - two) / 12e-5


def random_weights(rng, n_embd, *, bias=True, scaled=True, dtype=torch.float32):
    """Return random weights of the layers query, key and value, for which scores are moderate.

    Args:
        rng: the generator of the weights.
        n_embd: the embedding width.
        bias: whether the layers have a bias.
        scaled: whether the attention divides the scores by the square root of n_embd.
        dtype: the dtype of the weights.
    """
    size, weights = 1 if scaled else n_embd**-0.25, {}
    for name in LAYERS:
        weight = rng.normal(n_embd, n_embd) * 1.2 / math.sqrt(n_embd)
        weights[f"{name}.weight"] = (weight * size).to(dtype)
        if bias:
            weights[f"{name}.bias"] = (rng.normal(n_embd) / 2 * size).to(dtype)
    return weights


def load_weights(module, weights, dtype=None):
    """Load weights into a module and return it.

    Args:
        module: the module.
        weights: the weights by name.
        dtype: the dtype of the module; by default that of the weights.
    """
    module = module.to(dtype or next(iter(weights.values())).dtype)
    set_weights(module, weights)
    return module


def seeded(seed):
    """Return a new torch.Generator with this seed."""
    return torch.Generator().manual_seed(seed)


def random_seeds(rng, number):
    """Return `number` consecutive seeds, the first of which is random."""
    first = int(torch.randint(2**31, (), generator=rng.generator))
    return range(first, first + number)


# Requirements for all code of students


def unpack(result, number, what, call):
    """Require that a result is a tuple or list of a given length, and return it as a tuple.

    Args:
        result: the student's result.
        number: the expected length.
        what: a description of the entries, such as "the output and the present".
        call: the call, as text.
    """
    many = isinstance(result, tuple | list)
    kind = f"a {type(result).__name__}{f' of {len(result)}' if many else ''}"
    message = f"It returned {kind}; it should return {number} things: {what}."
    # Not `checks.require`, which records an unverified claim: the test compares the entries.
    compare.require(many and len(result) == number, f"{call}\n{message}")
    return tuple(result)


def check_same_gradients(actual, expected, inputs, upstream, call, **near):
    """Compare the gradients of an output with the gradients of the correct output.

    Args:
        actual: the student's output.
        expected: the correct output, computed from the same inputs.
        inputs: the tensors with respect to which gradients are computed, by name.
        upstream: the gradient with respect to the output.
        call: the call, as text.
        near: tolerances, as for `check`.
    """
    right = modules.gradients(expected, inputs, upstream)
    check_gradients(gradients(actual, inputs, upstream, call), right, call, **near)


def check_like(reference, code, rng, cases, **near):
    """Compare results and gradients of the student's code with those of correct code.

    Results are compared once more under torch.no_grad(). Gradients are compared with respect to the
    arguments that require a gradient and to the parameters of a module.

    Args:
        reference: the correct function or module.
        code: the student's function or module, with the same weights as the reference.
        rng: generates the gradients with respect to the results.
        cases: a pair for each call: its description, and its arguments by name.
        near: tolerances, as for `check`.
    """
    cases = [*cases]
    expected = [reference(**arguments) for _, arguments in cases]
    results = answers(code, [call_arguments(code, copies(arguments)) for _, arguments in cases])
    for (call, arguments), actual, right in zip(cases, results, expected, strict=True):
        check(actual, right, call, **near)
        upstream = rng.normal(*actual.shape, dtype=actual.dtype)
        slopes = modules.gradients(right, differentiated(reference, arguments), upstream)
        actual = gradients(actual, differentiated(code, arguments), upstream, call, may_miss=True)
        check_gradients(actual, slopes, call, **near)
    with torch.no_grad():
        results = answers(code, [call_arguments(code, copies(arguments)) for _, arguments in cases])
    for (call, _), actual, right in zip(cases, results, expected, strict=True):
        check(actual, right, f"{call}, under torch.no_grad()", **near)


def call_arguments(code, arguments):
    """Return a module's arguments as a list, and a function's arguments as a dict.

    A student's `forward` may name its arguments differently.
    """
    return [*arguments.values()] if isinstance(code, torch.nn.Module) else arguments


def copies(arguments):
    """Return the arguments by name, with tensors replaced by copies of the same memory layout."""
    return {name: t.clone() if torch.is_tensor(t) else t for name, t in arguments.items()}


def trained_parameters(module, names):
    """Return the named parameters of a module, without the bias of the layer `key`.

    This bias adds the same number to all scores of a query, which does not change their softmax. So
    its gradient is 0, and student code need not compute it.
    """
    every = parameters(module)
    return {name: every[name] for name in names if name != "key.bias"}


def differentiated(code, arguments):
    """Return the arguments and the module's parameters that require a gradient, by name."""
    is_module = isinstance(code, torch.nn.Module)
    learns = arguments | (trained_parameters(code, parameters(code)) if is_module else {})
    return {name: t for name, t in learns.items() if torch.is_tensor(t) and t.requires_grad}


def large_numbers(x, weights):
    """Yield triples (description, tokens, weights) in which some numbers are large.

    The scores of a query still differ little.

    Args:
        x: tokens, shape (B, T, C).
        weights: the weights of the layers query, key and value.
    """
    million = {
        "tokens near a million": dict.fromkeys(LAYERS, 1e-06) | {"x": 1e6},
        "keys near a million": {"query": 1e-6, "key": 1e6},
        "values near a million": {"value": 1e6},
    }
    for what, factors in million.items():
        changed = {name: w * factors.get(name.split(".")[0], 1) for name, w in weights.items()}
        yield what, x * factors.get("x", 1), changed
    # The bias of `key` adds the same number to all scores of a query.
    yield "scores of tens of thousands", x, weights | {"key.bias": weights["key.bias"] * 1e5}


@contextmanager
def unchanged(call, **arguments):
    """Require that the `with` block changes neither these tensors nor the gradient mode.

    The trusted process creates the tensors, too. So they must not depend on the student's code.
    """
    before = {name: (tensor.clone(), tensor.requires_grad) for name, tensor in arguments.items()}
    enabled = torch.is_grad_enabled()
    yield
    check_gradient_mode(call, enabled)
    for name, tensor in arguments.items():
        now = (tensor, tensor.requires_grad)
        check_that(now, judges.is_unchanged, call, name, *before[name])


@contextmanager
def state_unchanged(call):
    """Require that the `with` block changes neither the random state nor the gradient mode."""
    # Change the state. Otherwise, code that sets the test's seed again might leave it unchanged.
    torch.rand(1)
    state, enabled = torch.get_rng_state(), torch.is_grad_enabled()
    yield
    same = torch.equal(torch.get_rng_state(), state)
    require(
        same, f"{call}\nYour code changed the random state, but it needs no random numbers here."
    )
    check_gradient_mode(call, enabled)


def check_gradient_mode(call, enabled):
    """Require that a call did not change the gradient mode."""
    check_that(torch.is_grad_enabled(), judges.is_gradient_mode, call, enabled)


_OTHER_ERRORS = (
    *(NotImplementedError, NameError, AttributeError, MemoryError),
    *(CannotLoad, InternalError, ForbiddenCall, Mismatch),
)
"""Exceptions that do not mean that the code refuses invalid arguments. They are raised again."""


def check_refused(call, run, reason=""):
    """Require that `run` raises ValueError and does not change the gradient mode.

    Args:
        call: the call, as text.
        run: makes the call.
        reason: the clause after "as" in the message; by default there is none.
    """
    enabled, raised = torch.is_grad_enabled(), ""
    try:
        run()
    except _OTHER_ERRORS:
        raise
    except Exception as exception:
        raised = "ValueError" if isinstance(exception, ValueError) else type(exception).__name__
    check_that((raised, torch.is_grad_enabled()), judges.refused, call, enabled, reason)


def check_weights_are_kept(module, weights, call):
    """Require that the code did not change these weights of the module."""
    every = parameters(module)
    for name, weight in weights.items():
        check_that(every[name], judges.is_kept, call, name, weight)


def check_layers(module, n_embd, bias=True):
    """Require that a module has the layers query, key and value, and no other parameters.

    A layer may have a second name, for example as an entry of a list.
    """
    for name in LAYERS:
        check_layer(module, name, n_embd, n_embd, bias=bias)
    every = parameters(module).items()
    ids = {id(parameter) for name, parameter in every if name.partition(".")[0] in LAYERS}
    further = [name for name, p in every if p.requires_grad and id(p) not in ids]
    require(
        not further,
        f"{type(module).__name__} has other parameters: {further}. Its formula uses only the "
        f"parameters of {', '.join(LAYERS[:-1])} and {LAYERS[-1]}.",
    )


def check_random_start(make, names, call):
    """Require that the initial weights of the named layers are random: they depend on the seed.

    Args:
        make: returns a new module.
        names: the names of the layers.
        call: the call that creates the module, as text.
    """
    starts = []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        module = make()
        starts.append([getattr(module, name).weight.detach().clone() for name in names])
    for name, first, second in zip(names, *starts, strict=True):
        even = first.unique().numel() == 1 < first.numel()
        why = "All its numbers are equal." if even else "Does your code set a seed?"
        require(
            not first.equal(second),
            f"{call}, created with the seeds 1 and 2\nBoth times `{name}` has the same initial "
            f"weights. {why}",
        )


def turned(tensor):
    """Return an equal tensor whose strides are in the reverse order."""
    order = list(reversed(range(tensor.dim())))
    return tensor.permute(order).clone(memory_format=torch.contiguous_format).permute(order)


@torch.no_grad()
def loops_over_pairs(run):
    """Return whether the call `run(length)` loops over pairs of positions in Python.

    Such code is correct, but takes minutes for a long sequence. It is recognized by its time for
    24, 48 and 192 positions: from 48 to 192 positions, a loop over pairs adds about 20 times as
    many steps as from 24 to 48, and a loop over positions 6 times as many. If a call for 192
    positions takes less than 10 ms, the result is False.

    On a busy machine, a call may wait for longer than it runs. So a slow call is repeated up to
    eight times. Finally, it is compared with a call for twice as many positions, in which a loop
    over pairs takes four times as long.
    """

    def seconds_for(length):
        return seconds(lambda: run(length))

    if seconds_for(192) < 0.01:
        return False
    first, second = (min(seconds_for(length) for _ in range(6)) for length in (24, 48))
    bound, times = second + max(0.04, 10 * (second - first)), []
    while len(times) < 8 and sum(times) < 1:
        times.append(seconds_for(192))
        if times[-1] <= bound:
            break
    else:
        return True
    once = min(times[-1], seconds_for(192))
    return once > 0.025 and all(seconds_for(384) > 3 * once for _ in range(4))
