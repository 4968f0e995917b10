"""What the tests of all problems share: the numbers of the worked example, and attention by hand.

What ends in `_by_hand` is the definition, made runnable: plain Python, one number at a time. That
is slow and easy to read, and it is what your code is compared with.
"""

import math
import operator
from contextlib import contextmanager, nullcontext

import torch

from grader.code.forbidden import ForbiddenCall
from grader.errors import CannotLoad, InternalError, Mismatch
from grader.run.calls import answers
from grader.run.clock import seconds
from grader.run.compare import (
    check,
    check_form,
    check_gradients,
    check_layer,
    gradients,
    parameters,
    require,
    set_weights,
)
from grader.run.memoize import memoized

# The worked example: four positions, whose queries, keys and values have eight numbers each.


def table(text):
    """Read numbers that stand in rows and columns."""
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
# Q Kᵀ: a row per query, a column per key.
SCORES = table("""
     1.20239352 -0.44310134  1.47906100 -0.80531921
     0.53823363  1.09303249  4.61797795  0.95396625
    -0.21525807  0.78011689  1.79464107  0.87754205
     4.11701088 -1.60160544 -0.03209583  0.24644341
""")
# The scores divided by √8, the softmax of each row, and the average of the rows of V by that.
SCALED_SCORES = table("""
     0.42511031 -0.15665998  0.52292703 -0.28472334
     0.19029433  0.38644534  1.63270176  0.33727800
    -0.07610522  0.27581297  0.63450144  0.31025797
     1.45558315 -0.56625303 -0.01134759  0.08713090
""")
WEIGHTS = table("""
     0.31711856  0.17724012  0.34970588  0.15593544
     0.13147662  0.15996901  0.55626039  0.15229398
     0.16867284  0.23981773  0.34328727  0.24822216
     0.61822085  0.08185993  0.14258168  0.15733755
""")
OUTPUT = table("""
    -0.75249146 -1.23011672 -0.80977224  0.75990209 -0.20277817  0.26962756  1.23946731  0.93493436
    -0.77652092 -1.31724063 -1.03126918  1.40075263 -0.12820363  0.30998134  1.17359809  0.88325075
    -0.52552443 -1.31135110 -0.76657277  0.85102072 -0.39032334  0.23348044  0.95307130  0.96413752
    -0.84228483 -0.96535234 -0.71058386  0.14229459 -0.20809817  0.29146427  1.44269616  0.98682583
""")
# The same where a position sees only those up to its own.
CAUSAL_WEIGHTS = table("""
     1.00000000  0.00000000  0.00000000  0.00000000
     0.45111887  0.54888113  0.00000000  0.00000000
     0.22436527  0.31900079  0.45663394  0.00000000
     0.61822085  0.08185993  0.14258168  0.15733755
""")
CAUSAL_OUTPUT = table("""
    -1.20455614 -0.78141984 -0.60550966 -0.49607676  0.05358656  0.31648808  1.97222775  0.97455048
    -0.66957881 -1.64706996 -0.00307428 -0.63292153 -0.26699930  0.01312960  1.32977774  0.97090339
    -0.89506767 -1.53613058 -0.70591991  0.84266061 -0.00318276  0.20823676  1.38968769  0.86036549
    -0.84228483 -0.96535234 -0.71058386  0.14229459 -0.20809817  0.29146427  1.44269616  0.98682583
""")


# The definition, in lists of numbers.


def dot(a, b):
    """The dot product of two lists."""
    return sum(map(operator.mul, a, b))


def similarity_by_hand(queries, keys):
    """The dot product of every query with every key."""
    return [[dot(query, key) for key in keys] for query in queries]


def softmax_by_hand(row):
    """The softmax of a list: e to the power of each number, divided by the sum of all."""
    largest = max(row)
    powers = [math.exp(number - largest) for number in row]
    total = sum(powers)
    return [power / total for power in powers]


def average_by_hand(weights, rows):
    """The average of some rows, each of which counts by its weight."""
    return [dot(weights, column) for column in zip(*rows, strict=True)]


def attend_by_hand(query, keys, values, *, scaled=True):
    """What one query gathers: the average of the values by the softmax of its scores."""
    scores = [dot(query, key) / (math.sqrt(len(query)) if scaled else 1) for key in keys]
    return average_by_hand(softmax_by_hand(scores), values)


def attention_by_hand(queries, keys, values, *, scaled=True, causal=False):
    """What each query gathers; if causal, query i from the first i + 1 keys and values only."""
    seen = range(1, len(queries) + 1) if causal else [len(keys)] * len(queries)
    return [
        attend_by_hand(query, keys[:n], values[:n], scaled=scaled)
        for query, n in zip(queries, seen, strict=True)
    ]


# Modules whose weights the tests know by name.

LAYERS = ("query", "key", "value")


def linear_by_hand(rows, weights, name):
    """What the layer of this name makes of each row: a dot product and a bias for each output."""
    weight = weights[f"{name}.weight"].tolist()
    bias = weights[f"{name}.bias"].tolist() if f"{name}.bias" in weights else [0.0] * len(weight)
    return [[dot(w, row) + b for w, b in zip(weight, bias, strict=True)] for row in rows]


@memoized
def self_attention_by_hand(x, weights, *, scaled=True, causal=False):
    """What a module with these weights makes of x (B, T, C), one sequence at a time."""
    output = []
    for rows in x.tolist():
        queries, keys, values = (linear_by_hand(rows, weights, name) for name in LAYERS)
        output.append(attention_by_hand(queries, keys, values, scaled=scaled, causal=causal))
    return torch.tensor(output, dtype=x.dtype)


@memoized
def multi_head_by_hand(x, weights, n_head, causal=False, positions=None):
    """What a module with GPT-2's layers c_attn and c_proj makes of x (B, T, C), without dropout.

    Args:
        x: some sequences.
        weights: those of the layers, by name.
        n_head: how many heads there are.
        causal: whether a position sees only those up to its own.
        positions: of which positions to return the output; by default of all.
    """
    output = []
    for rows in x.tolist():
        projected = linear_by_hand(rows, weights, "c_attn")
        heads = [
            merged_heads_by_hand(projected, i, n_head, causal)
            for i in (range(len(rows)) if positions is None else positions)
        ]
        output.append(linear_by_hand(heads, weights, "c_proj"))
    return torch.tensor(output, dtype=x.dtype)


def merged_heads_by_hand(projected, i, n_head, causal):
    """What position i gathers in all heads, side by side; a row has its query, key and value."""
    n_embd = len(projected[0]) // 3
    head_dim, seen = n_embd // n_head, projected[: i + 1] if causal else projected
    merged = []
    for start in range(0, n_embd, head_dim):
        query = projected[i][start:][:head_dim]
        keys = [row[n_embd + start :][:head_dim] for row in seen]
        values = [row[2 * n_embd + start :][:head_dim] for row in seen]
        merged += attend_by_hand(query, keys, values)
    return merged


def slopes_by_hand(compute, inputs, upstream):
    """Every gradient of (compute(inputs) * upstream).sum() by its definition: nudge, and look.

    One step each way is enough for what bends as gently as attention: in float64 it is right to
    some nine digits. Where rows are nearly constant, `derivative` takes two.

    Args:
        compute: returns the output for inputs in float64, given by name as a dict.
        inputs: tensors by name, in any dtype; their slopes have the same.
        upstream: what each entry of the output is multiplied by.
    """
    slopes, doubles = {}, {name: t.detach().double() for name, t in inputs.items()}
    for name, tensor in doubles.items():
        entries = tensor.view(-1)  # the same numbers, so a nudge here is a nudge there
        slope = torch.zeros_like(entries)
        for i, entry in enumerate(entries.tolist()):

            def nudged(step, entries=entries, i=i, entry=entry):
                entries[i] = entry + step
                return (compute(doubles) * upstream).sum()

            slope[i] = (nudged(1e-5) - nudged(-1e-5)) / 2e-5
            entries[i] = entry
        slopes[name] = slope.view(tensor.shape).to(inputs[name].dtype)
    return slopes


def check_slopes(found, value, numbers, call, rng, rtol=1e-4, atol=1e-5):
    """Compare gradients with slopes along random directions.

    Args:
        found: the gradients, by name.
        value: returns what they are gradients of, a number, for other numbers under a name, which
            are in float64: a definition, not the student's code.
        numbers: the tensors at which they were taken, by name.
        call: what was called.
        rng: draws the directions.
        rtol: how far apart gradient and slope may be, relative to the slope.
        atol: how far apart a slope and 0 may be.
    """
    for name, tensor in numbers.items():
        direction = rng.normal(*tensor.shape, dtype=torch.float64)

        def moved(step, name=name, tensor=tensor, direction=direction):
            return value({name: tensor.detach().double() + step * direction})

        what = f"the gradient of {call} with respect to {name}, times a random direction"
        along = (found[name].double() * direction).sum()
        check(along, derivative(moved), what, rtol=rtol, atol=atol)


def check_gradient_with_dropout(module, x, call, rng, seed=5):
    """Require that a module in training has the gradient of the numbers that it keeps.

    After the same seed the same ones are dropped, so slopes can be had from the module itself. It
    and x must be in float64, in which a small step still shows.
    """
    direction, upstream = (rng.normal(*x.shape, dtype=torch.float64) for _ in range(2))

    def output(given):
        torch.default_generator.manual_seed(seed)
        return module(given)

    def moved(step):
        return (output(x + step * direction).detach() * upstream).sum()

    inputs = {"x": x.clone().requires_grad_()}
    found = gradients(output(inputs["x"]), inputs, upstream, call)["x"]
    slope = f"the gradient of {call} with respect to x, times a random direction"
    why = f"{slope}, when the same seed drops the same numbers each time"
    check((found * direction).sum(), derivative(moved), why)


def derivative(value):
    """How fast value(step) changes at step 0, from two small steps each way.

    The difference of one step each way isn't enough: where a row is nearly constant, LayerNorm
    bends so much that it would be wrong by more than the tests allow. With two, the error shrinks
    with the fourth power of the step (five-point stencil).
    """
    one, two = (value(step) - value(-step) for step in (1e-5, 2e-5))
    return (8 * one - two) / 12e-5


def random_weights(rng, n_embd, *, bias=True, scaled=True, dtype=torch.float32):
    """Weights for the three layers that make scores of ordinary size, be they scaled or not."""
    size, weights = 1 if scaled else n_embd**-0.25, {}
    for name in LAYERS:
        weight = rng.normal(n_embd, n_embd) * 1.2 / math.sqrt(n_embd)
        weights[f"{name}.weight"] = (weight * size).to(dtype)
        if bias:
            weights[f"{name}.bias"] = (rng.normal(n_embd) / 2 * size).to(dtype)
    return weights


def holding(module, weights, dtype=None):
    """The module in this dtype, by default that of the weights, holding these weights."""
    module = module.to(dtype or next(iter(weights.values())).dtype)
    set_weights(module, weights)
    return module


# What holds for all that is written here.


def check_same_gradients(actual, expected, inputs, upstream, call, **near):
    """Compare the gradients of two outputs with respect to the same inputs, by name."""
    check_gradients(
        gradients(actual, inputs, upstream, call),
        gradients(expected, inputs, upstream, call),
        call,
        **near,
    )


def check_like(reference, code, rng, cases, *, may_draw=False, **near):
    """Compare answers and gradients with those of what is right, and answers without gradients.

    Args:
        reference: what is right, a function or a module.
        code: the student's; a module holds the same weights.
        rng: what the gradients are weighted with is drawn from it.
        cases: what to say of each call, and its arguments by name. Gradients are compared of the
            tensors that require one, and of a module's parameters.
        may_draw: whether numbers may be drawn, as a dropout of rate 0 does in training.
        near: allowed differences, as for `check`.
    """
    cases = [*cases]
    expected = [reference(**arguments) for _, arguments in cases]
    upstreams = [rng.normal(*right.shape, dtype=right.dtype) for right in expected]
    given = [as_given(code, copied(arguments)) for _, arguments in cases]
    found = answers(code, given, upstreams=upstreams)
    for case, actual, right, upstream in zip(cases, found, expected, upstreams, strict=True):
        call, arguments = case
        check(actual, right, call, **near)
        learn = learning(reference, arguments)
        mine = {name: learning(code, arguments)[name] for name in learn}
        wanted = gradients(right, learn, upstream, call)
        for name, slope in gradients(actual, mine, upstream, call).items():
            check(slope, wanted[name], f"the gradient of {call} with respect to {name}", **near)
    check_without_gradients(code, cases, expected, may_draw=may_draw, **near)


@torch.no_grad()
def check_without_gradients(code, cases, expected, *, may_draw=False, **near):
    """Compare answers under torch.no_grad(), and require that arguments and chance are left."""
    given = [copied(arguments) for _, arguments in cases]
    with nullcontext() if may_draw else nothing_left_behind(cases[0][0]):
        found = answers(code, [as_given(code, arguments) for arguments in given])
    for (call, arguments), used, actual, right in zip(cases, given, found, expected, strict=True):
        check(actual, right, f"{call}, under torch.no_grad()", **near)
        for name, value in arguments.items():
            same = not torch.is_tensor(value) or torch.equal(used[name], value)
            require(same, f"{call}\nYour code changed its argument {name}.")


def as_given(code, arguments):
    """Arguments as a call takes them: those of a module by position, whose `forward` names them."""
    return [*arguments.values()] if isinstance(code, torch.nn.Module) else arguments


def copied(arguments):
    """The same arguments, with tensors of their own that lie in memory in the same order."""
    return {name: t.clone() if torch.is_tensor(t) else t for name, t in arguments.items()}


def trained(module, names):
    """The module's parameters of these names, but for the bias of `key`.

    It adds the same number to all scores of a query, and softmax does not see that. So its gradient
    is 0 in any case, and code may leave it out.
    """
    found = parameters(module)
    return {name: found[name] for name in names if name != "key.bias"}


def learning(code, arguments):
    """What gradients are asked for, by name: arguments, and what is trained of a module."""
    is_module = isinstance(code, torch.nn.Module)
    learns = arguments | (trained(code, parameters(code)) if is_module else {})
    return {name: t for name, t in learns.items() if torch.is_tensor(t) and t.requires_grad}


def check_like_in_use(right, code, rng, x, others, call, *, may_draw=False, **near):
    """Compare a module with a right one in evaluation, with other weights, and when x alone learns.

    In evaluation without gradients is where something may be kept from call to call.

    Args:
        right: what is right.
        code: the student's module, with the same weights.
        rng: what the gradients are weighted with is drawn from it.
        x: some tokens.
        others: other weights.
        call: what to say of a call.
        may_draw: whether numbers may be drawn in training, though not in evaluation.
        near: allowed differences, as for `check`.
    """
    moved = {"x": turned(x).requires_grad_()}
    check_like(right.eval(), code.eval(), rng, [(f"{call} in evaluation", moved)], **near)
    back, other = x.flip(1), x.clone()
    other[:, 1], other[:, -1] = 0, other[:, 0]
    # In one message, so that the first result is looked at after the second call.
    cases = [
        (f"{call} in evaluation, with a token of zeros and two that are alike", {"x": other}),
        (f"{call} in evaluation, with the same tokens in another order", {"x": back}),
    ]
    check_without_gradients(code, cases, [right(other), right(back)], **near)
    for module in (right, code):
        set_weights(module, others)
    case = (f"{call} in evaluation, after its weights were changed", {"x": back})
    check_without_gradients(code, [case], [right(back)], **near)
    for module in (right, code):
        module.train()
    with_others = (f"{call} with other weights", {"x": x})
    check_like(right, code, rng, [with_others], may_draw=may_draw, **near)
    for module in (right, code):
        module.requires_grad_(False)
    alone = {"x": x.clone().requires_grad_()}
    check_like(
        right, code, rng, [(f"{call} where x alone learns", alone)], may_draw=may_draw, **near
    )


def of_any_size(x, weights):
    """Yield tokens and weights of which one is large, and the scores' differences are ordinary."""
    million = {
        "tokens near a million": dict.fromkeys(LAYERS, 1e-06) | {"x": 1e6},
        "keys near a million": {"query": 1e-6, "key": 1e6},
        "values near a million": {"value": 1e6},
    }
    for what, factors in million.items():
        changed = {name: w * factors.get(name.split(".")[0], 1) for name, w in weights.items()}
        yield what, x * factors.get("x", 1), changed
    # The key's bias adds the same to all scores of a query.
    yield "scores of tens of thousands", x, weights | {"key.bias": weights["key.bias"] * 1e5}


@contextmanager
def left_alone(call, **arguments):
    """Require that what runs meanwhile leaves these tensors, and the gradient mode, as they are."""
    before = {name: as_it_is(tensor) for name, tensor in arguments.items()}
    enabled = torch.is_grad_enabled()
    yield
    check_gradient_mode(call, enabled)
    check_as_before(call, arguments, before)


def check_left_alone(function, calls, forms):
    """Require of each call, told as a text and arguments by name, that it leaves these alone.

    And that it returns a tensor of the given form: what does nothing leaves everything alone.
    """
    tensors = [{n: v for n, v in given.items() if torch.is_tensor(v)} for _, given in calls]
    before = [{name: as_it_is(tensor) for name, tensor in given.items()} for given in tensors]
    found = answers(function, [arguments.values() for _, arguments in calls])
    for (call, _), given, copies, actual, form in zip(
        calls, tensors, before, found, forms, strict=True
    ):
        check_form(actual, form, call)
        check_as_before(call, given, copies)


def as_it_is(tensor):
    """Return a copy of a tensor's numbers, and whether gradients are wanted for it."""
    return tensor.detach().clone(), tensor.requires_grad


def check_as_before(call, tensors, before):
    """Require that tensors, by name, are as they were when `as_it_is` was asked of each."""
    for name, tensor in tensors.items():
        numbers, learns = before[name]
        same = torch.equal(tensor, numbers) and tensor.requires_grad == learns
        require(same, f"{call}\nYour code changed its argument {name}.")


@contextmanager
def nothing_left_behind(call):
    """Require that what runs meanwhile leaves random state and gradient mode as they are."""
    torch.rand(1)  # an earlier call may have set the very seed that this one sets
    state, enabled = torch.get_rng_state(), torch.is_grad_enabled()
    yield
    same = torch.equal(torch.get_rng_state(), state)
    require(same, f"{call}\nYour code changed the random state; nothing here needs chance.")
    check_gradient_mode(call, enabled)


def check_gradient_mode(call, enabled):
    """Require that gradients are switched on, or off, as they were before a call."""
    left = "off" if enabled else "on"
    require(
        torch.is_grad_enabled() == enabled,
        f"{call}\nYour code leaves gradients switched {left} for all that is called after it. A "
        "block `with torch.no_grad():` ends by itself.",
    )


_OF_ITS_OWN = (
    *(NotImplementedError, NameError, AttributeError, MemoryError),
    *(CannotLoad, InternalError, ForbiddenCall, Mismatch),
)
"""What has a verdict of its own: code that isn't written yet, has a slip, or gave no answer."""


def check_refused(call, run, reason=""):
    """Require that `run` raises ValueError, and leaves the gradient mode as it is."""
    enabled = torch.is_grad_enabled()
    try:
        run()
    except _OF_ITS_OWN:
        raise
    except ValueError:
        check_gradient_mode(call, enabled)
        return
    except Exception as exception:
        found = f"It raised {type(exception).__name__}"
    else:
        found = "It was accepted"
    why = f", as {reason}" if reason else ""
    require(False, f"{call}\n{found}; it should raise ValueError{why}.")


def check_weights_are_kept(module, weights, call):
    """Require that the module still holds these weights; of shared ones, some that were set."""
    found = parameters(module)
    for name, parameter in found.items():
        given = [
            weights[other] for other, p in found.items() if p is parameter and other in weights
        ]
        same = not given or any(torch.equal(parameter.detach(), weight) for weight in given)
        require(same, f"{call}\nYour code changed the layers' own numbers, in `{name}`.")


def check_layers(module, n_embd, bias=True):
    """Require the layers query, key and value of a module, and that it learns nothing else.

    They may have other names, too, as those of a list have.
    """
    for name in LAYERS:
        check_layer(module, name, n_embd, n_embd, bias=bias)
    found = parameters(module).items()
    own = {id(parameter) for name, parameter in found if name.partition(".")[0] in LAYERS}
    further = [name for name, p in found if p.requires_grad and id(p) not in own]
    require(
        not further,
        f"{type(module).__name__} has further parameters that would learn: {further}. Its formula "
        f"has none but those of {', '.join(LAYERS[:-1])} and {LAYERS[-1]}.",
    )


def check_random_start(make, names, call):
    """Require that after another seed the module that `make` makes starts with other weights."""
    starts = []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        module = make()
        starts.append([getattr(module, name).weight.detach().clone() for name in names])
    for name, first, second in zip(names, *starts, strict=True):
        even = first.unique().numel() == 1 < first.numel()
        require(
            not torch.equal(first, second),
            f"{call}, made twice\nBoth times `{name}` starts with the same weights, though the "
            "seed was set to 1 before the first and to 2 before the second. "
            + ("All its numbers are alike." if even else "Is a seed set in your code?"),
        )


def turned(tensor):
    """The same numbers in the same places, but lying in memory in another order."""
    order = list(reversed(range(tensor.dim())))
    return tensor.permute(order).clone(memory_format=torch.contiguous_format).permute(order)


@torch.no_grad()
def loops_over_pairs(run):
    """Whether `run(length)` takes Python some steps for every pair of positions.

    That is right, too, but would take minutes for a long sequence. From 48 positions to 192 such a
    loop has twenty times as many steps more as from 24 to 48. A loop over positions has six times
    as many, 144 steps; others have none. Between that is so much room that the shortest of some
    times tells it; and where a machine is so fast that it doesn't, a long sequence is done in time.
    So it is by what takes 10 ms for 192 positions, as nearly all does: 2100 take it a second or
    two, be it pair by pair. Nothing else is asked of that.

    On a busy machine a call may wait for longer than it runs. So what seems to be a loop is run up
    to eight times, or for a second: then it is one, or it would not take so long. And what seems to
    be none, as the short ones waited, but takes so long that 2100 positions would not be done in
    time if it were one, is asked for twice as many: that takes a loop four times as long.
    """

    def took(length):
        return seconds(lambda: run(length))

    if took(192) < 0.01:
        return False
    first, second = (min(took(length) for _ in range(6)) for length in (24, 48))
    bound, times = second + max(0.04, 10 * (second - first)), []
    while len(times) < 8 and sum(times) < 1:
        times.append(took(192))
        if times[-1] <= bound:
            break
    else:
        return True
    once = min(times[-1], took(192))
    return once > 0.025 and all(took(384) > 3 * once for _ in range(4))
