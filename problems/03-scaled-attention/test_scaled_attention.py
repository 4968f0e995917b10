"""Tests of problem 03. Run them with `uv run pytest` in this folder."""

import functools
import math
import operator

import pytest
import torch

from grader.testing.compare import (
    check,
    check_gradients,
    check_layer,
    check_number,
    gradients,
    parameters,
    require,
    set_weights,
)
from grader.testing.diagnose import attempt

# Nothing in problem.py may call these, under any name.
FORBIDDEN = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")
LAYERS = ("query", "key", "value")


# The worked example: 4 queries, 4 keys and 4 values, 8 numbers each, rounded to 8 digits.


def table(text):
    """Read a table of numbers."""
    rows = [[float(word) for word in line.split()] for line in text.strip().splitlines()]
    return torch.tensor(rows, dtype=torch.float64)


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
# Q Kᵀ, divided by √8 = 2.8284.
SCALED_SCORES = table("""
     0.42511031 -0.15665998  0.52292703 -0.28472334
     0.19029433  0.38644534  1.63270176  0.33727800
    -0.07610522  0.27581297  0.63450144  0.31025797
     1.45558315 -0.56625303 -0.01134759  0.08713090
""")
# The softmax of each row of scaled scores.
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


# The definition in plain Python, one number at a time.


def dot(a, b):
    """The dot product of two lists."""
    return sum(map(operator.mul, a, b))


def softmax_by_hand(row):
    """The softmax of a list of numbers."""
    largest = max(row)
    powers = [math.exp(entry - largest) for entry in row]
    total = sum(powers)
    return [power / total for power in powers]


def attention_by_hand(queries, keys, values):
    """Attention of lists of n queries, m keys and m values: a list of n mixtures."""
    mixtures = []
    for query in queries:
        scores = [dot(query, key) / math.sqrt(len(query)) for key in keys]
        weights = softmax_by_hand(scores)
        mixtures.append([dot(weights, column) for column in zip(*values, strict=True)])
    return mixtures


def attention_of(q, k, v):
    """`attention_by_hand` for each matrix of a batch, as a tensor of the dtype of v."""
    batches = [t.double().reshape(-1, *t.shape[-2:]).tolist() for t in (q, k, v)]
    mixtures = [attention_by_hand(*matrices) for matrices in zip(*batches, strict=True)]
    mixtures = torch.tensor(mixtures, dtype=torch.float64)
    return mixtures.reshape(*q.shape[:-1], v.shape[-1]).to(v.dtype)


def layer_by_hand(weights, name, rows):
    """What the linear layer of this name makes of each row: weight times row, plus bias."""
    weight = weights[f"{name}.weight"].tolist()
    bias = weights[f"{name}.bias"].tolist() if f"{name}.bias" in weights else [0.0] * len(weight)
    return [[dot(w, row) + b for w, b in zip(weight, bias, strict=True)] for row in rows]


def module_by_hand(weights, x):
    """What ScaledAttention with these weights should make of x, shape (B, T, C)."""
    mixtures = [
        attention_by_hand(*(layer_by_hand(weights, name, rows) for name in LAYERS))
        for rows in x.double().tolist()
    ]
    return torch.tensor(mixtures, dtype=x.dtype)


# Random layers, and what the tests do with them.


def draw_weights(rng, n_embd, bias=True):
    """Weights for the three layers, by name, that make attention neither flat nor sharp."""
    weights = {}
    for name in LAYERS:
        weights[f"{name}.weight"] = rng.normal(n_embd, n_embd) * 1.2 / math.sqrt(n_embd)
        if bias:
            weights[f"{name}.bias"] = rng.normal(n_embd) / 2
    return weights


def make_module(problem, weights, dtype=torch.float64):
    """The student's ScaledAttention, holding these weights."""
    n_embd = len(weights["query.weight"])
    module = problem.ScaledAttention(n_embd, bias="query.bias" in weights).to(dtype)
    set_weights(module, weights)
    return module


def trained(module, weights):
    """The parameters among `weights` that the output depends on.

    The bias of the keys isn't one of them: it adds the same number to all scores of a query, and
    softmax does not see that.
    """
    wanted = weights.keys() - {"key.bias"}
    return {name: p for name, p in parameters(module).items() if name in wanted}


def slopes(compute, inputs, upstream):
    """How much (compute() * upstream).sum() grows per nudge of each entry of each input."""
    step, found = 1e-5, {}
    for name, tensor in inputs.items():
        entries = tensor.detach().view(-1)  # the same numbers, so a nudge here is a nudge there
        slope = torch.zeros_like(entries)
        for i, entry in enumerate(entries.tolist()):
            entries[i] = entry + step
            up = (compute() * upstream).sum()
            entries[i] = entry - step
            slope[i] = (up - (compute() * upstream).sum()) / (2 * step)
            entries[i] = entry
        found[name] = slope.view(tensor.shape)
    return found


def seeded(seed):
    """A generator of its own, with this seed."""
    return torch.Generator().manual_seed(seed)


def draw_seeds(rng, number):
    """Seeds that are all different."""
    first = int(torch.randint(2**31, (), generator=rng.generator))
    return range(first, first + number)


# scaled_dot_product_attention


@pytest.mark.points(1)
def test_worked_example(problem):
    """scaled_dot_product_attention gives the tables of the worked example"""
    attention = problem.scaled_dot_product_attention
    # With the rows of the identity as values, the mixtures are the weights themselves.
    weights = attention(Q.clone(), K.clone(), torch.eye(4, dtype=torch.float64))
    check(
        weights,
        WEIGHTS,
        "scaled_dot_product_attention(Q, K, identity)",
        atol=2e-7,
        sizes={"d_k": 8},
    )
    output = attention(Q.clone(), K.clone(), V.clone())
    check(output, OUTPUT, "scaled_dot_product_attention(Q, K, V)", atol=2e-7)


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("leading", "n", "m", "d_k", "d_v"),
    [
        ((), 4, 6, 5, 3),
        ((2,), 4, 3, 6, 7),
        ((3, 2), 5, 6, 7, 4),
        ((2, 1, 3), 4, 5, 6, 7),
    ],
    ids=["2-D", "3-D", "4-D", "5-D"],
)
def test_attention_with_leading_dimensions(problem, rng, leading, n, m, d_k, d_v):
    """scaled_dot_product_attention works on each matrix of a batch by itself"""
    q, k, v = (
        rng.normal(*leading, n, d_k),
        rng.normal(*leading, m, d_k),
        rng.normal(*leading, m, d_v),
    )
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    call = f"scaled_dot_product_attention(q, k, v) with {shapes}"
    check(
        problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone()),
        attention_of(q, k, v),
        call,
    )


@pytest.mark.points(1)
@pytest.mark.parametrize("d_k", [2, 3, 12, 50])
def test_scores_are_divided_by_the_root_of_d_k(problem, rng, d_k):
    """scaled_dot_product_attention divides by the square root of the d_k that it is given"""
    q, k, v = rng.normal(4, d_k), rng.normal(5, d_k), torch.eye(5, dtype=torch.float64)
    call = f"scaled_dot_product_attention(q, k, identity) with d_k = {d_k}"
    check(
        problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone()),
        attention_of(q, k, v),
        call,
    )


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "sizes",
    [(1, 4, 3, 5, 2), (2, 1, 3, 5, 4), (3, 4, 1, 5, 2), (2, 4, 3, 1, 5), (2, 4, 3, 5, 1), (1,) * 5],
    ids=["one in a batch", "one query", "one key", "d_k = 1", "d_v = 1", "all 1"],
)
def test_attention_keeps_sizes_of_one(problem, rng, sizes):
    """scaled_dot_product_attention keeps every dimension, even one of size 1"""
    batch, n, m, d_k, d_v = sizes
    q, k, v = rng.normal(batch, n, d_k), rng.normal(batch, m, d_k), rng.normal(batch, m, d_v)
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    call = f"scaled_dot_product_attention(q, k, v) with {shapes}"
    check(
        problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone()),
        attention_of(q, k, v),
        call,
    )


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_attention_with_large_scores(problem, rng, dtype):
    """scaled_dot_product_attention stays right when scores are large and lie far apart"""
    q, k = torch.zeros(4, 16, dtype=dtype), torch.zeros(3, 16, dtype=dtype)
    # The scores of query i and key j, before they are divided by 4, are centre_i + spread_i * j.
    q[:, 0], q[:, 1] = torch.tensor([-4000, 0, 4000, 0]), torch.tensor([4, -2, 3, 8000])
    k[:, 0], k[:, 1] = 1, torch.arange(3)
    v = rng.normal(3, 5, dtype=dtype)
    call = "scaled_dot_product_attention(q, k, v) with scaled scores near -1000, 0 and 1000"
    actual = problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone())
    # float32 rounds a score in the thousands to three or four digits after the point.
    atol = 1e-3 if dtype == torch.float32 else None
    check(actual, attention_of(q, k, v), call, atol=atol)


@pytest.mark.points(1.5)
def test_attention_lets_gradients_through(problem, rng):
    """Gradients flow through scaled_dot_product_attention to q, k and v"""
    inputs = {"q": rng.normal(2, 3, 5), "k": rng.normal(2, 4, 5), "v": rng.normal(2, 4, 2)}
    upstream = rng.normal(2, 3, 2)
    expected = slopes(lambda: attention_of(**inputs), inputs, upstream)
    inputs = {name: tensor.requires_grad_() for name, tensor in inputs.items()}
    call = "scaled_dot_product_attention(q, k, v)"
    actual = gradients(problem.scaled_dot_product_attention(**inputs), inputs, upstream, call)
    for name, slope in expected.items():
        check(actual[name], slope, f"the gradient of {call} by {name}", rtol=1e-6, atol=1e-8)


# ScaledAttention


@pytest.mark.points(0.5)
def test_layers(problem):
    """ScaledAttention has the layers query, key and value, with a bias unless told otherwise"""
    for module, n_embd, bias in [
        (problem.ScaledAttention(), 768, True),
        (problem.ScaledAttention(6), 6, True),
        (problem.ScaledAttention(n_embd=5, bias=False), 5, False),
    ]:
        for name in LAYERS:
            check_layer(module, name, n_embd, n_embd, bias=bias)
    starts = []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        module = problem.ScaledAttention(4)
        starts.append([getattr(module, name).weight.detach().clone() for name in LAYERS])
    for name, first, second in zip(LAYERS, *starts, strict=True):
        require(
            not torch.equal(first, second),
            f"ScaledAttention(4), made twice\nBoth times `{name}` starts with the same weights, "
            "though the seed was set to 1 before the first and to 2 before the second. "
            "Is a seed set in your code?",
        )


@pytest.mark.points(1.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [(2, 5, 6), (3, 4, 7), (1, 3, 5), (4, 1, 3), (2, 3, 1)], ids=str)
def test_module(problem, rng, shape, bias):
    """ScaledAttention makes queries, keys and values of x and lets them attend"""
    weights, x = draw_weights(rng, shape[-1], bias), rng.normal(*shape)
    module = make_module(problem, weights)
    expected = module_by_hand(weights, x)
    call = f"ScaledAttention({shape[-1]}, bias={bias})(x) with x of shape {shape}"
    check(module(x), expected, call)
    module.eval()
    check(module(x), expected, f"{call}, after eval()")


@pytest.mark.points(1)
def test_module_lets_gradients_through(problem, rng):
    """Gradients flow through ScaledAttention to x and to the layers"""
    weights, x, upstream = draw_weights(rng, 3), rng.normal(2, 4, 3), rng.normal(2, 4, 3)
    module = make_module(problem, weights)
    expected = slopes(lambda: module_by_hand(weights, x), {"x": x, **weights}, upstream)
    inputs = {"x": x.requires_grad_(), **trained(module, weights)}
    actual = gradients(module(x), inputs, upstream, "ScaledAttention(3)(x)")
    for name, gradient in actual.items():
        call = f"the gradient of ScaledAttention(3)(x) by {name}"
        check(gradient, expected[name], call, rtol=1e-6, atol=1e-8)


@pytest.mark.points(0.5)
def test_module_remembers_nothing(problem, rng):
    """A call of ScaledAttention depends on x and the weights of now, and on no earlier call"""
    weights, x = draw_weights(rng, 4), rng.normal(2, 3, 4)
    module = make_module(problem, weights)
    check(module(x), module_by_hand(weights, x), "ScaledAttention(4)(x)")
    other = rng.normal(2, 3, 4)
    check(module(other), module_by_hand(weights, other), "the second call, with another x")
    longer = rng.normal(3, 5, 4)
    check(module(longer), module_by_hand(weights, longer), "the third call, with a longer x")
    weights = draw_weights(rng, 4)
    set_weights(module, weights)
    check(module(x), module_by_hand(weights, x), "the first x again, after a change of the weights")
    module.eval()
    for again in (x, other):
        check(module(again), module_by_hand(weights, again), "another call, after eval()")


# Both


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_dtype_is_kept(problem, rng, dtype):
    """Attention returns the dtype that came in, with its precision"""
    name = str(dtype).removeprefix("torch.")
    q, k, v = (
        rng.normal(3, 7, dtype=dtype),
        rng.normal(4, 7, dtype=dtype),
        rng.normal(4, 2, dtype=dtype),
    )
    call = f"scaled_dot_product_attention(q, k, v) in {name}"
    check(
        problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone()),
        attention_of(q, k, v),
        call,
    )
    weights, x = draw_weights(rng, 5), rng.normal(2, 3, 5, dtype=dtype)
    weights = {key: weight.to(dtype) for key, weight in weights.items()}
    module = make_module(problem, weights, dtype)
    check(module(x), module_by_hand(weights, x), f"ScaledAttention(5)(x) in {name}")


@pytest.mark.points(0.25)
def test_arguments_are_left_alone(problem, rng):
    """Attention changes neither its arguments nor its weights nor the global random state"""
    q, k, v, x, weights = (
        rng.normal(3, 5),
        rng.normal(4, 5),
        rng.normal(4, 2),
        rng.normal(2, 3, 4),
        draw_weights(rng, 4),
    )
    module = make_module(problem, weights)
    arguments = {"q": q, "k": k, "v": v, "x": x}
    before = {name: tensor.clone() for name, tensor in arguments.items()}
    random_state = torch.get_rng_state()
    problem.scaled_dot_product_attention(q, k, v)
    module(x)
    unchanged = torch.equal(torch.get_rng_state(), random_state)
    require(unchanged, "Your code changed the global random state; attention needs no chance.")
    for name, tensor in arguments.items():
        require(torch.equal(tensor, before[name]), f"Your code changed its argument {name}.")
    found = parameters(module)
    for name, weight in weights.items():
        kept = torch.equal(found[name].detach(), weight)
        require(kept, f"A call of ScaledAttention changed its {name}.")


@pytest.mark.points(0.25)
def test_attention_is_your_own(problem, rng):
    """Attention is written without PyTorch's own attention functions and modules"""
    problem.scaled_dot_product_attention(rng.normal(2, 3), rng.normal(4, 3), rng.normal(4, 3))
    problem.ScaledAttention(4).double()(rng.normal(1, 3, 4))
    problem.scaled_dot_product_attention(
        rng.normal(4, 64, 64), rng.normal(4, 64, 64), rng.normal(4, 64, 64)
    )


# dot_product_variance


@pytest.mark.points(1)
@pytest.mark.parametrize("scaled", [False, True], ids=["unscaled", "scaled"])
@pytest.mark.parametrize("d_k", [5, 20])
def test_variance(problem, rng, d_k, scaled):
    """dot_product_variance is about d_k, and about 1 when the dot products are scaled"""
    n_pairs, (seed,) = 2000, draw_seeds(rng, 1)
    value = problem.dot_product_variance(d_k, n_pairs, scaled, generator=seeded(seed))
    expected = 1 if scaled else d_k
    # Six times the standard error of a variance of 2000 dot products.
    chance = 6 * math.sqrt((2 + 6 / d_k) / n_pairs)
    call = f"dot_product_variance({d_k}, {n_pairs}, scaled={scaled})"
    low, high = expected * (1 - chance), expected * (1 + chance)
    check_number(value, low, high, call, f"about {expected}: from {low:.2f} to {high:.2f}")


@pytest.mark.points(0.75)
def test_variance_of_the_population(problem, rng):
    """dot_product_variance is the variance of n_pairs numbers as a population, not rounded"""
    call = "dot_product_variance(16, 2, scaled=False)"
    seeds = draw_seeds(rng, 400)
    values = [problem.dot_product_variance(16, 2, False, generator=seeded(s)) for s in seeds]
    check_number(values[0], -1e-3, math.inf, call, "a variance, so not negative")
    # Two numbers lie half their distance from their mean, so their population variance is half of
    # the true variance on average.
    meaning = "about 8 on average over 400 seeds, half of d_k, as n_pairs is only 2"
    check_number(sum(values) / 400, 5.2, 11.36, call, meaning)
    # Two dot products are so close together about one time in four, three or more far less often.
    small = sum(value < 0.8 for value in values) / 400
    meaning = "below 0.8 for about a quarter of the seeds, as n_pairs is only 2"
    check_number(small, 0.136, 0.37, f"the share of small values of {call}", meaning)
    rounded = all(value == round(value, 4) for value in values)
    require(not rounded, f"{call}\nIt returned {values[0]}; the variance should not be rounded.")


@pytest.mark.points(0.75)
def test_variance_uses_the_generator(problem, rng):
    """dot_product_variance draws all its numbers from the generator that it is given"""
    call = "dot_product_variance(6, 40, False, generator)"
    seed, *others = draw_seeds(rng, 6)

    def value(generator, global_seed):
        torch.default_generator.manual_seed(global_seed)
        before = torch.get_rng_state()
        answer = problem.dot_product_variance(6, 40, False, generator)
        check_number(answer, -1e-3, math.inf, call, "a variance, so not negative")
        unchanged = torch.equal(torch.get_rng_state(), before)
        require(unchanged, f"{call}\nIt drew from the global generator too.")
        return answer

    first = value(seeded(seed), 1)
    again = value(seeded(seed), 2)
    same = math.isclose(first, again, rel_tol=1e-6)
    require(same, f"{call}\nThe same seed gave {first:.6g}, then {again:.6g}.")
    answers = [value(seeded(other), 1) for other in others]
    differ = any(answer != first for answer in answers)
    require(differ, f"{call}\nSix generators with other seeds all gave {first:.6g}.")
    used = seeded(seed)
    torch.rand(5, generator=used)
    message = f"{call}\nA generator that had been drawn from before gave the value of a fresh one."
    require(value(used, 1) != first, message)


@pytest.mark.points(0.5)
def test_variance_without_a_generator(problem, rng):
    """dot_product_variance draws from torch's global generator when it is given none"""
    call = "dot_product_variance(6, 40, False)"
    seed, *others = draw_seeds(rng, 6)

    def value(global_seed):
        torch.default_generator.manual_seed(global_seed)
        answer = problem.dot_product_variance(6, 40, False)
        check_number(answer, -1e-3, math.inf, call, "a variance, so not negative")
        return answer

    first, again = value(seed), value(seed)
    same = math.isclose(first, again, rel_tol=1e-6)
    message = f"{call}\nAfter the same torch.manual_seed it gave {first:.6g}, then {again:.6g}."
    require(same, message)
    differ = any(value(other) != first for other in others)
    require(differ, f"{call}\nAfter six different torch.manual_seed it always gave {first:.6g}.")


# What the course asks your code to find out which mistake it may have made.


def wave(*shape, start=0.0):
    """Numbers between -1.5 and 1.5 that need no chance."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64)
    return (1.5 * torch.sin(1.7 * steps + start)).reshape(shape)


def wave_weights(n_embd, bias=True):
    """Weights for the three layers, by name."""
    weights = {}
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = wave(n_embd, n_embd, start=1.3 * start)
        if bias:
            weights[f"{name}.bias"] = wave(n_embd, start=2.0 + start)
    return weights


def probe(problem):
    """Ask a few small questions whose answers tell one mistake from another."""

    def shaped(*leading, n=3, m=4, d_k=5, d_v=2):
        return (
            wave(*leading, n, d_k),
            wave(*leading, m, d_k, start=0.4),
            wave(*leading, m, d_v, start=0.9),
        )

    def attend(*tensors):
        return problem.scaled_dot_product_attention(*tensors)

    def gradient(name):
        inputs = dict(zip("qkv", shaped(2), strict=True))
        inputs[name].requires_grad_()
        output = attend(*inputs.values())
        upstream = wave(*output.shape, start=0.7)
        return torch.autograd.grad(output, inputs[name], upstream, allow_unused=True)[0]

    def changed(number):
        tensors = shaped(2)
        before = tensors[number].clone()
        attend(*tensors)
        return not torch.equal(before, tensors[number])

    def far_apart():
        q, k = torch.zeros(4, 16), torch.zeros(3, 16)
        q[:, 0], q[:, 1] = torch.tensor([-4000, 0, 4000, 0]), torch.tensor([4, -2, 3, 8000])
        k[:, 0], k[:, 1] = 1, torch.arange(3)
        return attend(q.double(), k.double(), torch.eye(3, dtype=torch.float64))

    def precise(*tensors):
        return (attend(*tensors) - attention_of(*tensors)).abs().max() < 1e-9

    def module(*shape, bias=True, dtype=torch.float64):
        made = make_module(problem, wave_weights(shape[-1], bias), dtype)
        return made(wave(*shape, start=0.2).to(dtype))

    def module_gradient(name):
        made, x = make_module(problem, wave_weights(3)), wave(2, 4, 3).requires_grad_()
        inputs = {"x": x, **parameters(made)}
        output = made(x)
        upstream = wave(2, 4, 3, start=0.7)
        return torch.autograd.grad(output, inputs[name], upstream, allow_unused=True)[0]

    def later_call():
        made = make_module(problem, wave_weights(4))
        made(wave(2, 3, 4))
        return made(wave(2, 3, 4, start=0.5))

    def names(bias):
        found = [
            name
            for name, _ in problem.ScaledAttention(4, bias=bias).named_parameters(
                remove_duplicate=False
            )
        ]
        wanted = [f"{a}.{b}" for a in LAYERS for b in ("weight", "bias")]
        return torch.tensor([float(name in found) for name in wanted])

    def variance(*arguments, seed=1):
        return problem.dot_product_variance(*arguments, generator=seeded(seed))

    def doublings(value):
        return round(math.log2(value))

    @functools.cache
    def pairs_of_two():
        return [variance(16, 2, False, seed=seed) for seed in range(400)]

    def often_small():
        return sum(value < 0.8 for value in pairs_of_two()) > 44

    def scatters():
        values = [variance(64, 50, True, seed=seed) for seed in range(100)]
        mean = sum(values) / 100
        return sum((value - mean) ** 2 for value in values) / 100 > 0.01 * mean**2

    def alike(*, seeds=(1, 1), global_seeds=(1, 1), skip=0, given=True):
        values = []
        for seed, global_seed, skipped in zip(seeds, global_seeds, (0, skip), strict=True):
            generator = seeded(seed)
            torch.rand(skipped, generator=generator)
            torch.default_generator.manual_seed(global_seed)
            generator = generator if given else None
            values.append(problem.dot_product_variance(6, 40, False, generator))
        return math.isclose(*values, rel_tol=1e-6)

    def global_state_moves():
        torch.default_generator.manual_seed(1)
        before = torch.get_rng_state()
        variance(6, 40, False)
        return not torch.equal(before, torch.get_rng_state())

    return {
        "attention, 2-D": attempt(attend, *shaped()),
        "attention, 3-D": attempt(attend, *shaped(2)),
        "attention, 4-D": attempt(attend, *shaped(2, 3)),
        "attention, weights": attempt(
            attend, wave(4, 6), wave(3, 6, start=0.4), torch.eye(3, dtype=torch.float64)
        ),
        "attention, d_k of 11": attempt(attend, *shaped(2, d_k=11)),
        "attention, as many keys as numbers": attempt(attend, *shaped(2, n=5, m=5, d_v=5)),
        "attention, one in a batch": attempt(attend, *shaped(1)),
        "attention, one query": attempt(attend, *shaped(2, n=1)),
        "attention, one key": attempt(attend, *shaped(2, m=1)),
        "attention, rows far apart": attempt(far_apart),
        "attention, float32": attempt(attend, *(t.float() for t in shaped(2))),
        "attention, float64 is precise": attempt(precise, *shaped(2)),
        "attention, float64 is precise, d_k of 4": attempt(precise, *shaped(2, d_k=4)),
        "attention, gradient by q": attempt(gradient, "q"),
        "attention, gradient by k": attempt(gradient, "k"),
        "attention, gradient by v": attempt(gradient, "v"),
        "attention, q changed": attempt(changed, 0),
        "attention, k changed": attempt(changed, 1),
        "attention, v changed": attempt(changed, 2),
        "module, parameters with bias": attempt(names, True),
        "module, parameters without bias": attempt(names, False),
        "module, output": attempt(module, 2, 3, 4),
        "module, without bias": attempt(module, 2, 3, 4, bias=False),
        "module, another width": attempt(module, 2, 3, 7),
        "module, one in a batch": attempt(module, 1, 3, 4),
        "module, one position": attempt(module, 2, 1, 4),
        "module, float32": attempt(module, 2, 3, 4, dtype=torch.float32),
        "module, second call": attempt(later_call),
        "module, gradient by x": attempt(module_gradient, "x"),
        "module, gradient by query": attempt(module_gradient, "query.weight"),
        "module, gradient by key": attempt(module_gradient, "key.weight"),
        "module, gradient by value": attempt(module_gradient, "value.weight"),
        "variance, a float": attempt(lambda: isinstance(variance(5, 20, False), float)),
        "variance, doublings of 16": attempt(lambda: doublings(variance(16, 2000, False) / 16)),
        "variance, doublings of 1, scaled": attempt(lambda: doublings(variance(16, 2000, True))),
        "variance, two pairs": attempt(lambda: doublings(sum(pairs_of_two()) / 3200)),
        "variance, two pairs, often small": attempt(often_small),
        "variance, scatters from seed to seed": attempt(scatters),
        "variance, same seeds": attempt(alike, global_seeds=(1, 2)),
        "variance, other seeds": attempt(alike, seeds=(1, 2)),
        "variance, generator used before": attempt(alike, skip=5),
        "variance, global state moves": attempt(global_state_moves),
        "variance, no generator, same seeds": attempt(alike, given=False),
        "variance, no generator, other seeds": attempt(alike, given=False, global_seeds=(1, 2)),
    }


# --- hidden tests ---


@pytest.mark.points(2.5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("leading", "n", "m", "d_k", "d_v"),
    [
        ((), 7, 5, 3, 9),
        ((), 1, 6, 10, 1),
        ((5,), 3, 8, 11, 2),
        ((2,), 6, 6, 6, 6),
        ((1,), 1, 1, 96, 4),
        ((2, 4), 3, 9, 40, 5),
        ((1, 3), 8, 2, 5, 1),
        ((2, 2, 1, 3), 4, 7, 3, 5),
    ],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else str(value),
)
def test_hidden_attention(problem, solution, rng, leading, n, m, d_k, d_v, dtype):
    """scaled_dot_product_attention is right for other sizes, and so are its gradients"""
    inputs = {
        "q": rng.normal(*leading, n, d_k, dtype=dtype).requires_grad_(),
        "k": rng.normal(*leading, m, d_k, dtype=dtype).requires_grad_(),
        "v": rng.normal(*leading, m, d_v, dtype=dtype).requires_grad_(),
    }
    upstream = rng.normal(*leading, n, d_v, dtype=dtype)
    shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in inputs.items())
    call = f"scaled_dot_product_attention(q, k, v) with {shapes}"
    expected = solution.scaled_dot_product_attention(**inputs)
    actual = problem.scaled_dot_product_attention(**inputs)
    check(actual, expected, call)
    # With one key its weight is 1 whatever q and k are, so a formula may leave them out.
    wanted = inputs if m > 1 else {"v": inputs["v"]}
    check_gradients(
        gradients(actual, wanted, upstream, call),
        gradients(expected, wanted, upstream, call),
        call,
    )


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_hidden_large_scores(problem, solution, rng, dtype):
    """scaled_dot_product_attention is stable when queries, keys or batches lie far apart"""
    q, k = torch.zeros(2, 2, 3, 16, dtype=dtype), torch.zeros(2, 2, 4, 16, dtype=dtype)
    q[..., 0] = torch.tensor([-4000, 0, 4000])
    q[1, 0, :, 0], q[0, 1, :, 0] = -8000, 8000
    q[..., 1] = torch.tensor([4, -2, 3])
    k[..., 0], k[..., 1] = 1, torch.arange(4)
    q[1, 1, :, 1], k[1, 1, :, 1] = 4, torch.tensor([-2000, 2000, 1999, 1500])
    v, upstream = (
        rng.normal(2, 2, 4, 5, dtype=dtype).requires_grad_(),
        rng.normal(2, 2, 3, 5, dtype=dtype),
    )
    inputs = {"q": q.requires_grad_(), "k": k.requires_grad_(), "v": v}
    call = "scaled_dot_product_attention(q, k, v) with scores of thousands"
    expected = solution.scaled_dot_product_attention(**inputs)
    actual = problem.scaled_dot_product_attention(**inputs)
    atol = 5e-3 if dtype == torch.float32 else None
    check(actual, expected, call, atol=atol)
    found = gradients(actual, inputs, upstream, call)
    wanted = gradients(expected, inputs, upstream, call)
    check(found["v"], wanted["v"], f"the gradient of {call} by v", atol=atol)
    # Those by q and k are sums of large numbers that cancel, so they are not compared.
    for name in ("q", "k"):
        finite = bool(found[name].isfinite().all())
        require(finite, f"{call}\nThe gradient by {name} has NaN or inf in it.")


@pytest.mark.points(0.5)
def test_hidden_attention_remembers_nothing(problem, solution, rng):
    """A second call of attention changes nothing about the first, nor the random state"""
    call = "scaled_dot_product_attention(q, k, v)"
    q, k, v, others = (
        rng.normal(2, 3, 6),
        rng.normal(2, 4, 6),
        rng.normal(2, 4, 5),
        rng.normal(2, 4, 6),
    )
    random_state = torch.get_rng_state()
    first = problem.scaled_dot_product_attention(q.clone(), k, v)
    second = problem.scaled_dot_product_attention(q.clone(), others, v)
    check(first, solution.scaled_dot_product_attention(q, k, v), f"{call}, after a second call")
    expected = solution.scaled_dot_product_attention(q, others, v)
    check(second, expected, f"the second call, {call}")
    for tensor in (q, k, v):
        tensor.mul_(1.5)
    expected = solution.scaled_dot_product_attention(q, k, v)
    check(
        problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone()),
        expected,
        f"{call} with other numbers",
    )
    unchanged = torch.equal(torch.get_rng_state(), random_state)
    require(unchanged, "Your code changed the global random state; attention needs no chance.")


@pytest.mark.points(2.5)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize(
    "shape", [(3, 7, 5), (2, 9, 16), (4, 2, 11), (1, 1, 4), (5, 5, 5), (1, 6, 40)], ids=str
)
def test_hidden_module(problem, solution, rng, shape, bias):
    """ScaledAttention and its gradients are right for other sizes, in training and in eval"""
    _, length, n_embd = shape
    weights = draw_weights(rng, n_embd, bias)
    reference = make_module(solution, weights)
    module = problem.ScaledAttention(n_embd=n_embd, bias=bias).double()
    for name in LAYERS:
        check_layer(module, name, n_embd, n_embd, bias=bias)
    set_weights(module, dict(reference.named_parameters()))
    # With one position its weight is 1, whatever its query and key are.
    names = weights if length > 1 else {"value.weight": None}
    for mode in (True, False):
        module.train(mode)
        x, upstream = rng.normal(*shape).requires_grad_(), rng.normal(*shape)
        call = f"ScaledAttention({n_embd}, bias={bias})(x) with x of shape {shape}"
        call += "" if mode else ", after eval()"
        expected, actual = reference(x=x), module(x=x)
        check(actual, expected, call)
        check_gradients(
            gradients(actual, {"x": x, **trained(module, names)}, upstream, call),
            gradients(expected, {"x": x, **trained(reference, names)}, upstream, call),
            call,
        )


@pytest.mark.points(0.5)
def test_hidden_module_in_float32(problem, solution, rng):
    """ScaledAttention works in float32 as it is made, and two of them are independent"""
    modules, references = [], []
    for n_embd in (6, 10):
        weights = {name: w.float() for name, w in draw_weights(rng, n_embd).items()}
        references.append(make_module(solution, weights, torch.float32))
        modules.append(problem.ScaledAttention(n_embd))
        set_weights(modules[-1], weights)
    for n_embd, module, reference in zip((6, 10), modules, references, strict=True):
        x = rng.normal(3, 4, n_embd, dtype=torch.float32)
        check(module(x), reference(x), f"ScaledAttention({n_embd})(x) in float32")


@pytest.mark.points(0.75)
def test_hidden_arguments_and_weights_are_left_alone(problem, rng):
    """Attention changes neither its arguments nor its weights nor the random state"""
    arguments = {
        "q": rng.normal(2, 2, 3, 5),
        "k": rng.normal(2, 2, 4, 5),
        "v": rng.normal(2, 2, 4, 6),
    }
    arguments["x"] = rng.normal(1, 6, 4)
    before = {name: tensor.clone() for name, tensor in arguments.items()}
    weights = draw_weights(rng, 4)
    module = make_module(problem, weights)
    random_state = torch.get_rng_state()
    problem.scaled_dot_product_attention(arguments["q"], arguments["k"], arguments["v"])
    module(arguments["x"])
    unchanged = torch.equal(torch.get_rng_state(), random_state)
    require(unchanged, "Your code changed the global random state; attention needs no chance.")
    for name, tensor in arguments.items():
        require(torch.equal(tensor, before[name]), f"Your code changed its argument {name}.")
    for name, parameter in parameters(module).items():
        if name in weights:
            kept = torch.equal(parameter.detach(), weights[name])
            require(kept, f"A call of ScaledAttention changed its {name}.")


@pytest.mark.points(0.75)
@pytest.mark.parametrize(
    ("d_k", "n_pairs", "scaled"),
    [(1, 3000, False), (1, 3000, True), (8, 1500, True), (9, 1500, False), (48, 800, True)],
)
def test_hidden_variance(problem, rng, d_k, n_pairs, scaled):
    """dot_product_variance is right for other lengths, from a generator or without one"""
    seed, other = draw_seeds(rng, 2)
    given = problem.dot_product_variance(
        d_k=d_k, n_pairs=n_pairs, scaled=scaled, generator=seeded(seed)
    )
    torch.default_generator.manual_seed(other)
    drawn = problem.dot_product_variance(d_k, n_pairs, scaled, None)
    expected = 1 if scaled else d_k
    chance = 6.5 * math.sqrt((2 + 6 / d_k) / n_pairs)
    low, high = expected * (1 - chance), expected * (1 + chance)
    call = f"dot_product_variance({d_k}, {n_pairs}, scaled={scaled})"
    for value in (given, drawn):
        check_number(value, low, high, call, f"about {expected}: from {low:.2f} to {high:.2f}")


@pytest.mark.points(0.75)
def test_hidden_variance_of_two_pairs(problem, rng):
    """dot_product_variance uses exactly n_pairs pairs, and divides by n_pairs, if scaled too"""
    call = "dot_product_variance(16, 2, scaled=True)"
    values = []
    for seed in draw_seeds(rng, 300):
        torch.default_generator.manual_seed(seed)  # as torch.manual_seed, but 20 times as fast
        values.append(problem.dot_product_variance(16, 2, True))
        check_number(values[-1], -1e-3, math.inf, call, "a variance, so not negative")
    meaning = "about 0.5 on average over 300 seeds, half of 1, as n_pairs is only 2"
    check_number(sum(values) / 300, 0.29, 0.74, call, meaning)
    small = sum(value < 0.05 for value in values) / 300
    meaning = "below 0.05 for about a quarter of the seeds, as n_pairs is only 2"
    check_number(small, 0.125, 0.38, f"the share of small values of {call}", meaning)


@pytest.mark.points(0.75)
def test_hidden_variance_from_seed_to_seed(problem, rng):
    """dot_product_variance scatters from seed to seed as it does for normal numbers"""
    call = "dot_product_variance(1, 50, scaled=True)"
    values = []
    for seed in draw_seeds(rng, 160):
        torch.default_generator.manual_seed(
            1
        )  # what does not come from the generator is always alike
        values.append(problem.dot_product_variance(1, 50, True, seeded(seed)))
        check_number(values[-1], -1e-3, math.inf, call, "a variance, so not negative")
    mean = sum(values) / 160
    check_number(mean, 0.8, 1.16, call, "about 0.98 on average over 160 seeds")
    # Products of normal numbers have a fourth moment of 9; those of uniform ones have 3.24.
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / 160)
    meaning = "scattered by about 0.39 from seed to seed, as normal numbers are"
    check_number(spread, 0.26, 0.8, f"{call}, for 160 seeds", meaning)
