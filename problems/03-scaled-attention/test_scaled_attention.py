"""Tests of problem 03. Run them with `uv run pytest` in this folder."""

import math
from functools import partial

import pytest
import torch

from grader.run import checks, compare
from grader.run.calls import answers
from shared import robust
from shared import worked_example as example
from shared.oracles import scaled_attention as oracles

# scaled_dot_product_attention


def check_attention(problem, q, k, v, what, **near):
    """Compare the result of scaled_dot_product_attention with the result computed by hand."""
    actual = problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone())
    call = f"scaled_dot_product_attention(q, k, v) with {what}"
    checks.check(actual, oracles.output(q, k, v), call, **near)


@pytest.mark.points(0.75)
def test_attention_weights(problem, rng):
    """The weights of scaled_dot_product_attention are the softmax of the scaled scores"""
    # A scale by another size, or its half, square or root, would give a different result.
    q, k, v = rng.normal(6, 11), rng.normal(7, 11), torch.eye(7)
    what = "q of shape (6, 11), k of shape (7, 11) and the identity as v; the output is the weights"
    check_attention(problem, q, k, v, what, sizes={"d_k": 11, "n": 6, "m": 7})


@pytest.mark.points(0.5)
def test_worked_example(problem):
    """scaled_dot_product_attention returns the weights and outputs of the worked example"""
    q, k, v = example.Q.clone(), example.K.clone(), example.V.clone()
    weights = problem.scaled_dot_product_attention(q, k, torch.eye(4))
    checks.check(weights, oracles.WEIGHTS, "scaled_dot_product_attention(Q, K, identity)")
    output = problem.scaled_dot_product_attention(q, k, v)
    checks.check(output, oracles.OUTPUT, "scaled_dot_product_attention(Q, K, V)")


@pytest.mark.points(0.75)
@pytest.mark.parametrize("d_k", [6, 12, 50, 64, 256, 3000])
def test_scores_are_divided_by_the_root_of_d_k(problem, rng, d_k):
    """scaled_dot_product_attention divides the scores by √d_k, for any d_k"""
    q, k, v = rng.normal(4, d_k), rng.normal(5, d_k), torch.eye(5)
    what = f"q of shape (4, {d_k}), k of shape (5, {d_k}) and the identity as v"
    check_attention(problem, q, k, v, what, sizes={"d_k": d_k})


@pytest.mark.points(0.25)
@pytest.mark.parametrize("d_k", [64, 256, 512, 1024])
def test_attention_keeps_the_gradient_of_long_vectors(problem, rng, d_k):
    """The gradient of long vectors does not vanish, as scores are divided by √d_k"""
    q, k, v = rng.normal(1, d_k), rng.normal(2, d_k), torch.tensor([[1.0], [0.0]])
    # Shift k along q until the scaled scores are 1.5 and -1.5.
    scores = 1.5 * math.sqrt(d_k) * torch.tensor([[1.0], [-1.0]])
    k += (scores - k @ q.T) * q / (q @ q.T)
    call = f"scaled_dot_product_attention(q, k, v) with d_k = {d_k} and scores ± {scores[0, 0]:.0f}"
    q.requires_grad_()
    output = problem.scaled_dot_product_attention(q.clone(), k.clone(), v)
    slope = checks.gradients(output, {"q": q}, torch.ones(1, 1), call)["q"]
    checks.check_that(slope, oracles.does_not_vanish, call, k)


@pytest.mark.points(0.5)
def test_attention_with_large_scores(problem, rng):
    """scaled_dot_product_attention is correct when scores are large and far apart"""
    q, k = torch.zeros(4, 16), torch.zeros(3, 16)
    # Before the division by 4, the score of query i and key j is q[i, 0] + q[i, 1] * j.
    q[:, 0], q[:, 1] = torch.tensor([-4000, 0, 4000, 0]), torch.tensor([4, -2, 3, 8000])
    k[:, 0], k[:, 1] = 1, torch.arange(3)
    # float32 rounds a score in the thousands to three or four decimals.
    what = "q of shape (4, 16), k of shape (3, 16) and scaled scores near -1000, 0 and 1000"
    check_attention(problem, q, k, rng.normal(3, 5), what, atol=5e-3)


def attention_call(problem, rng, lead=(), n=4, m=5, d_k=6, d_v=3, dtype=torch.float32):
    """Return a `robust.Call` of scaled_dot_product_attention with random arguments."""
    sizes = {"q": (n, d_k), "k": (m, d_k), "v": (m, d_v)}
    inputs = {name: rng.normal(*lead, *size, dtype=dtype) for name, size in sizes.items()}
    return robust.Call(
        "scaled_dot_product_attention(q, k, v)",
        problem.scaled_dot_product_attention,
        inputs,
        oracles.output,
        slopes=partial(oracles.slopes, inputs),
    )


@pytest.mark.points(3.75)
@robust.parts(*robust.COMMON, *robust.LEADING)
def test_attention_in_use(problem, rng, part):
    """scaled_dot_product_attention follows the rules for all problems"""
    make = partial(attention_call, problem, rng)
    robust.check_part(part, rng, make, sizes="lead n m d_k d_v")


# ScaledAttention


def make_attention(problem, weights):
    """Return the student's ScaledAttention with these weights and their dtype."""
    n_embd, bias = len(weights["query.weight"]), "query.bias" in weights
    return example.load_weights(problem.ScaledAttention(n_embd, bias=bias), weights)


def check_module(module, x, weights, call, **near):
    """Compare the output of a module with the output for `weights` computed by hand."""
    checks.check(module(x.clone()), oracles.of_module(x, weights), call, **near)


@pytest.mark.points(0.5)
def test_layers(problem):
    """The only layers are query, key and value; they have biases unless bias=False"""
    example.check_layers(problem.ScaledAttention(), 768)
    example.check_layers(problem.ScaledAttention(6), 6)
    example.check_layers(problem.ScaledAttention(n_embd=5, bias=False), 5, bias=False)
    make = partial(problem.ScaledAttention, 4)
    example.check_random_start(make, example.LAYERS, "ScaledAttention(4)")


@pytest.mark.points(0.75)
def test_module_weights(problem, rng):
    """The weights of ScaledAttention are the softmax of the scaled scores"""
    weights, x = example.random_weights(rng, 7), torch.eye(5, 7).repeat(2, 1, 1)
    weights |= {"value.weight": torch.eye(7), "value.bias": torch.zeros(7)}
    call = "ScaledAttention(7)(x), x of shape (2, 5, 7), with the identity as v; it returns weights"
    sizes = {"n_embd": 7, "T": 5}
    check_module(make_attention(problem, weights), x, weights, call, sizes=sizes)


@pytest.mark.points(1.5)
@pytest.mark.parametrize("shape", [(2, 5, 6), (3, 4, 7), (4, 3, 5)], ids=str)
def test_module(problem, rng, shape):
    """ScaledAttention returns the scaled attention of the queries, keys and values of x"""
    bias = shape != (4, 3, 5)
    weights, x = example.random_weights(rng, shape[-1], bias=bias), rng.normal(*shape)
    x[0, 1] = 0  # no special case
    module = make_attention(problem, weights)
    call = f"ScaledAttention({shape[-1]}, bias={bias})(x) with x of shape {shape}, x[0, 1] is 0"
    check_module(module, x, weights, call)
    check_module(module.eval(), x, weights, f"{call}, after eval()")


def module_call(problem, rng, batch=2, length=3, n_embd=4, dtype=torch.float32):
    """Return a `robust.Call` of a ScaledAttention with random arguments."""
    weights = example.random_weights(rng, n_embd, dtype=dtype)
    x = rng.normal(batch, length, n_embd, dtype=dtype)
    return robust.Call(
        f"ScaledAttention({n_embd})(x)",
        make_attention(problem, weights),
        {"x": x},
        lambda x: oracles.of_module(x, weights),
        weights=weights,
        slopes=partial(oracles.slopes_of_module, x, weights),
    )


@pytest.mark.points(1.75)
@robust.parts(*robust.COMMON)
def test_module_in_use(problem, rng, part):
    """ScaledAttention follows the rules for all problems"""
    make = partial(module_call, problem, rng)
    robust.check_part(part, rng, make, sizes="batch length n_embd", other={"length": 5})


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_attention_is_your_own(problem, rng):
    """Attention does not call PyTorch's attention functions and modules"""
    x, large = rng.normal(1, 3, 4), rng.normal(4, 64, 64)
    for each in (x[0], large):
        output = problem.scaled_dot_product_attention(each, each, each)
        checks.check_form(output, each, "scaled_dot_product_attention(x, x, x)")
    checks.check_form(problem.ScaledAttention(4)(x), x, "ScaledAttention(4)(x)")


# dot_product_variance


def variance(value, call):
    """Require a result of dot_product_variance that is not negative, and return it as a float."""
    compare.check_number(value, -1e-3, math.inf, call, "a variance, so not negative")
    return float(value)


@pytest.mark.points(2.5)
@pytest.mark.parametrize("scaled", [False, True], ids=["unscaled", "scaled"])
@pytest.mark.parametrize("d_k", [5, 20])
def test_variance(problem, rng, d_k, scaled):
    """dot_product_variance returns about d_k, or about 1 for scaled dot products"""
    (seed,) = example.random_seeds(rng, 1)
    value = problem.dot_product_variance(d_k, 2000, scaled, generator=example.seeded(seed))
    call = f"dot_product_variance({d_k}, 2000, scaled={scaled})"
    checks.check_that(variance(value, call), oracles.is_variance, call, d_k, 2000, scaled)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("has_generator", [True, False], ids=["a generator", "no generator"])
def test_variance_uses_the_generator(problem, rng, has_generator):
    """Random numbers are drawn from the generator, or from torch's global one if it is None"""
    call = f"dot_product_variance(6, 40, False{', generator' if has_generator else ''})"
    seed, *others = example.random_seeds(rng, 6)

    def value(seed, global_seed):
        torch.default_generator.manual_seed(global_seed)
        before = torch.get_rng_state()
        arguments = [example.seeded(seed)] if has_generator else []
        result = variance(problem.dot_product_variance(6, 40, False, *arguments), call)
        changed = not torch.equal(torch.get_rng_state(), before)
        message = "The global random state changed; all numbers should be drawn from the generator."
        checks.require(not (has_generator and changed), f"{call}\n{message}")
        return result

    first, again = value(seed, seed), value(seed, 1 if has_generator else seed)
    checks.check_that((first, again), oracles.same_again, call, "The same seed")
    differ = any(value(other, other) != first for other in others)
    checks.require(differ, f"{call}\nWith six different seeds it always returned {first:.6g}.")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("d_k", [7, 64, 1024])
def test_variance_is_scaled_exactly(problem, rng, d_k):
    """For the same seed, the unscaled variance is exactly d_k times the scaled one"""
    (seed,) = example.random_seeds(rng, 1)
    call = f"dot_product_variance({d_k}, 50, scaled, generator), with one seed for all calls"
    calls = [(d_k, 50, scaled, example.seeded(seed)) for scaled in (False, True, False)]
    # The seeds of torch's global generator differ, as no number should be drawn from it.
    results = answers(problem.dot_product_variance, calls, seeds=range(3))
    variances = tuple(variance(result, call) for result in results)
    checks.check_that(variances, oracles.scaled_exactly, call, d_k)


@pytest.mark.points(0.5)
def test_variance_of_the_population(problem, rng):
    """dot_product_variance returns the population variance (it divides by n_pairs), unrounded"""
    call = "dot_product_variance(16, 2, scaled=False)"
    calls = [(16, 2, False, example.seeded(seed)) for seed in example.random_seeds(rng, 400)]
    values = [variance(value, call) for value in answers(problem.dot_product_variance, calls)]
    checks.check_that(sum(values) / 400, oracles.mean_of_two_pairs, call)
    small = sum(value < 0.8 for value in values) / 400
    checks.check_that(small, oracles.share_of_small_ones, call)
    rounded = all(value in (round(value, 4), float(f"{value:.6g}")) for value in values)
    message = f"It returned {values[0]}. The variance should not be rounded."
    checks.require(not rounded, f"{call}\n{message}")


# --- hidden tests ---

from shared import three_layers  # noqa: E402
from shared.oracles import many_variances, modules  # noqa: E402


def both(solution, problem, weights):
    """Return the reference's and the student's ScaledAttention, both with these weights."""
    n_embd = len(weights["query.weight"])
    right = modules.build(weights, solution.ScaledAttention, n_embd)
    return right, make_attention(problem, weights)


SIZES = [
    ((), 7, 5, 3, 9),
    ((), 1, 6, 10, 1),
    ((5,), 3, 8, 11, 2),
    ((2,), 6, 6, 6, 6),
    ((1,), 1, 1, 96, 4),
    ((), 2, 300, 512, 3),
    ((2, 4), 3, 9, 40, 5),
    ((1, 3), 8, 2, 5, 1),
    ((2, 2, 1, 3), 4, 7, 3, 5),
    ((), 300, 4, 2, 3),
    ((), 2, 1100, 2, 1),
    ((), 2, 2100, 3, 2),
    ((), 3, 2, 1, 1100),
    ((300,), 1, 2, 2, 3),
]


@pytest.mark.points(2.25)
@pytest.mark.parametrize(
    ("leading", "n", "m", "d_k", "d_v"),
    SIZES,
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else str(value),
)
def test_hidden_attention(problem, solution, rng, leading, n, m, d_k, d_v):
    """scaled_dot_product_attention is correct for other sizes, and so are its gradients"""
    inputs = {
        "q": rng.normal(*leading, n, d_k).requires_grad_(),
        "k": rng.normal(*leading, m, d_k).requires_grad_(),
        "v": rng.normal(*leading, m, d_v).requires_grad_(),
    }
    upstream = rng.normal(*leading, n, d_v)
    shapes = ", ".join(f"{name} of shape {tuple(tensor.shape)}" for name, tensor in inputs.items())
    call = f"scaled_dot_product_attention(q, k, v) with {shapes}"
    expected = solution.scaled_dot_product_attention(**inputs)
    actual = problem.scaled_dot_product_attention(**example.copies(inputs))
    checks.check(actual, expected, call)
    # A single key has the weight 1 for any q and k, so code need not use q and k.
    learning = inputs if m > 1 else {"v": inputs["v"]}
    # The sum of a thousand numbers has a rounding error for each of them.
    example.check_same_gradients(actual, expected, learning, upstream, call, atol=1e-3)


@pytest.mark.points(0.25)
def test_hidden_attention_to_other_numbers(problem, solution, rng):
    """scaled_dot_product_attention is correct for numbers of any size and transposed tensors"""
    shapes = {"q": (2, 3, 4, 5), "k": (2, 3, 6, 5), "v": (2, 3, 6, 2)}

    def inputs(learning="qkv", **sizes):
        # Use float64: large scores with small differences have few correct digits in float32.
        normal = partial(rng.normal, dtype=torch.float64)
        tensors = {n: example.turned(normal(*shapes[n])) * sizes.get(n, 1) for n in shapes}
        return {n: tensor.requires_grad_(n in learning) for n, tensor in tensors.items()}

    far = inputs(learning="v")
    far["q"][..., 0] *= 1e5
    far["k"][..., 0] = 1  # so q[..., 0] adds the same number to all scores of a query
    cases = {
        "ordinary numbers": inputs(),
        "large queries": inputs(q=1e6, k=1e-6),
        "large keys": inputs(q=1e-6, k=1e6),
        "large values": inputs(v=1e6),
        "scores far from 0": far,
        "only q requiring a gradient": inputs(learning="q"),
        "only k requiring a gradient": inputs(learning="k"),
    }
    calls = [(f"scaled_dot_product_attention(q, k, v) with {what}", cases[what]) for what in cases]
    right, code = solution.scaled_dot_product_attention, problem.scaled_dot_product_attention
    example.check_like(right, code, rng, calls)


@pytest.mark.points(0.25)
def test_hidden_attention_with_many_keys(problem, rng):
    """scaled_dot_product_attention is correct for 300 keys, large values and tiny weights"""
    q, k, v = rng.normal(2, 5) / 10, rng.normal(300, 5), 1000 * (2 + rng.normal(300, 3))
    # For the second query, key 0 has the score 14. Each other key has the score 0 and the weight
    # 8e-7.
    q[1] = torch.tensor([14 * math.sqrt(5), 0, 0, 0, 0])
    k[:, 0], k[0, 0], k[1], v[0] = 0, 1, 0, 0
    what = "q of shape (2, 5), 300 keys and values near 2000; q[1] has one score of 14 and 299 of 0"
    check_attention(problem, q, k, v, f"{what}; k[1] and v[0] are 0")


@pytest.mark.points(0.5)
def test_hidden_large_scores(problem, solution, rng):
    """scaled_dot_product_attention is correct when scores are thousands apart, in any dimension"""
    q, k = torch.zeros(2, 2, 3, 16), torch.zeros(2, 2, 4, 16)
    q[..., 0] = torch.tensor([-4000, 0, 4000])
    q[1, 0, :, 0], q[0, 1, :, 0] = -8000, 8000
    q[..., 1] = torch.tensor([4, -2, 3])
    k[..., 0], k[..., 1] = 1, torch.arange(4)
    q[1, 1, :, 1], k[1, 1, :, 1] = 4, torch.tensor([-2000, 2000, 1999, 1500])
    v, upstream = rng.normal(2, 2, 4, 5), rng.normal(2, 2, 3, 5)
    inputs = {"q": q.requires_grad_(), "k": k.requires_grad_(), "v": v.requires_grad_()}
    call = "scaled_dot_product_attention(q, k, v) with scores in the thousands"
    expected = solution.scaled_dot_product_attention(**inputs)
    actual = problem.scaled_dot_product_attention(**example.copies(inputs))
    atol = 5e-3  # float32 rounds a score in the thousands to three or four decimals
    checks.check(actual, expected, call, atol=atol)
    gradients = checks.gradients(actual, inputs, upstream, call)
    right = modules.gradients(expected, inputs, upstream)
    what = f"the gradient of {call} with respect to v"
    checks.check(gradients["v"], right["v"], what, atol=atol)
    # The gradients of q and k are not compared, as large numbers cancel in them.
    for name in ("q", "k"):
        finite = bool(gradients[name].isfinite().all())
        checks.require(finite, f"{call}\nThe gradient with respect to {name} contains NaN or inf.")


@pytest.mark.points(1.75)
@pytest.mark.parametrize(
    ("shape", "bias"),
    [
        ((3, 7, 5), True),
        ((2, 9, 16), False),
        ((4, 2, 11), True),
        ((1, 1, 4), True),
        ((5, 5, 5), True),
        ((1, 6, 40), True),
        ((1, 70, 2), True),
        ((300, 2, 3), False),
        ((1, 2, 130), True),
    ],
    ids=str,
)
def test_hidden_module(problem, solution, rng, shape, bias):
    """ScaledAttention and its gradients are correct for other sizes, in training and evaluation"""
    _, length, n_embd = shape
    weights = example.random_weights(rng, n_embd, bias=bias)
    reference = modules.build(weights, solution.ScaledAttention, n_embd, bias=bias)
    module = problem.ScaledAttention(n_embd=n_embd, bias=bias)
    for name in example.LAYERS:
        checks.check_layer(module, name, n_embd, n_embd, bias=bias)
    checks.set_weights(module, weights)
    # A single position has the weight 1 for any query and key.
    names = weights if length > 1 else {"value.weight": None}
    for mode in (True, False):
        module.train(mode)
        x, upstream = rng.normal(*shape).requires_grad_(), rng.normal(*shape)
        call = f"ScaledAttention({n_embd}, bias={bias})(x) with x of shape {shape}"
        call += "" if mode else ", after eval()"
        expected, slopes = reference(x), modules.slopes(reference, x, upstream, names)
        actual = module(x=x)
        checks.check(actual, expected, call, atol=1e-4)
        inputs = {"x": x, **example.trained_parameters(module, names)}
        gradients = checks.gradients(actual, inputs, upstream, call)
        checks.check_gradients(gradients, slopes, call, atol=1e-3)


@pytest.mark.points(0.25)
def test_hidden_module_with_a_long_sequence(problem, solution, rng):
    """ScaledAttention is correct for a sequence of 1100 tokens"""
    weights, x = example.random_weights(rng, 2), rng.normal(1, 1100, 2)
    right, module = both(solution, problem, weights)
    call = "ScaledAttention(2)(x) with x of shape (1, 1100, 2)"
    three_layers.check_long_sequence(right, module, x, call)


@pytest.mark.points(0.25)
def test_hidden_module_with_numbers_of_any_size(problem, solution, rng):
    """ScaledAttention is correct for tokens, keys, values and scores of any size"""
    double = torch.float64  # float32 has few decimals near a million
    tokens, usual = rng.normal(2, 4, 6, dtype=double), example.random_weights(rng, 6, dtype=double)
    for what, x, weights in example.large_numbers(tokens, usual):
        case = (f"ScaledAttention(6)(x) with {what}", {"x": x.requires_grad_()})
        pair = both(solution, problem, weights)
        example.check_like(*pair, rng, [case], atol=1e-4)


@pytest.mark.points(0.75)
def test_hidden_precision(problem, solution, rng):
    """Outputs and gradients have the precision of float64, and two modules are independent"""
    double = torch.float64
    sizes = {"q": (2, 3, 7), "k": (2, 4, 7), "v": (2, 4, 3)}
    case = {name: rng.normal(*size, dtype=double).requires_grad_() for name, size in sizes.items()}
    right, code = solution.scaled_dot_product_attention, problem.scaled_dot_product_attention
    cases = [("scaled_dot_product_attention(q, k, v) in float64", case)]
    example.check_like(right, code, rng, cases, all_digits=True)
    many = [example.random_weights(rng, n_embd, dtype=double) for n_embd in (6, 10)]
    pairs = [both(solution, problem, weights) for weights in many]
    for n_embd, pair in zip((6, 10), pairs, strict=True):
        x = rng.normal(3, 4, n_embd, dtype=double).requires_grad_()
        case = (f"ScaledAttention({n_embd})(x) in float64", {"x": x})
        example.check_like(*pair, rng, [case], all_digits=True)


@pytest.mark.points(1)
@pytest.mark.parametrize("call", [attention_call, module_call], ids=["function", "module"])
@robust.parts("nothing changed", "second call")
def test_hidden_in_use(problem, rng, call, part):
    """For other sizes, too, a call changes no argument and does not depend on earlier calls"""
    sizes = {"lead": (2, 2)} if call is attention_call else {"batch": 1, "length": 6}
    robust.check_part(part, rng, partial(call, problem, rng, **sizes))


@pytest.mark.points(1.25)
@pytest.mark.parametrize(
    ("d_k", "n_pairs", "scaled"),
    [
        (1, 3000, True),
        (8, 1500, True),
        (9, 1500, False),
        (48, 800, True),
        (300, 400, False),
        (1100, 200, True),
    ],
)
def test_hidden_variance(problem, rng, d_k, n_pairs, scaled):
    """dot_product_variance is correct for other d_k and n_pairs, with and without a generator"""
    seed, other = example.random_seeds(rng, 2)
    enabled = torch.is_grad_enabled()
    with_generator = problem.dot_product_variance(
        n_pairs=n_pairs, d_k=d_k, scaled=scaled, generator=example.seeded(seed)
    )
    torch.default_generator.manual_seed(other)
    without = problem.dot_product_variance(d_k, n_pairs, scaled, None)
    call = f"dot_product_variance({d_k}, {n_pairs}, scaled={scaled})"
    for value in (with_generator, without):
        checks.check_that(variance(value, call), oracles.is_variance, call, d_k, n_pairs, scaled)
    example.check_gradient_mode(call, enabled)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("n_pairs", [3, 25])
def test_hidden_variance_of_these_very_pairs(problem, rng, n_pairs):
    """dot_product_variance returns the variance of the drawn pairs, not a multiple of it"""
    seeds = example.random_seeds(rng, 5)
    call = f"dot_product_variance(16, {n_pairs}, False, generator)"
    values = [
        problem.dot_product_variance(16, n_pairs, False, example.seeded(seed)) for seed in seeds
    ]
    values = [variance(value, call) for value in values]
    checks.check_that(values, many_variances.of_these_pairs, call, n_pairs, [*seeds])


@pytest.mark.points(0.5)
def test_hidden_variance_of_two_pairs(problem, rng):
    """dot_product_variance draws exactly n_pairs pairs and divides by n_pairs, scaled or not"""
    call = "dot_product_variance(16, 2, scaled=True)"
    values = answers(
        problem.dot_product_variance, [(16, 2, True)] * 300, example.random_seeds(rng, 300)
    )
    values = [variance(value, call) for value in values]
    checks.check_that(sum(values) / 300, many_variances.mean_of_two_scaled_pairs, call)
    small = sum(value < 0.05 for value in values) / 300
    checks.check_that(small, many_variances.share_of_small_scaled_ones, call)


@pytest.mark.points(0.5)
def test_hidden_variance_from_seed_to_seed(problem, rng):
    """Over many seeds, dot_product_variance varies as for numbers from N(0, 1)"""
    call = "dot_product_variance(1, 50, scaled=True)"
    calls = [(1, 50, True, example.seeded(seed)) for seed in example.random_seeds(rng, 160)]
    # The global generator has one seed, so numbers from it would be equal in all calls.
    values = answers(problem.dot_product_variance, calls, seeds=[1] * 160)
    values = [variance(value, call) for value in values]
    mean = sum(values) / 160
    checks.check_that(mean, many_variances.mean_of_products, call)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / 160)
    checks.check_that(spread, many_variances.spread_of_products, call)


@pytest.mark.points(0.25)
def test_hidden_variance_of_one_pair_more(problem, rng):
    """dot_product_variance uses every pair, even if n_pairs is just above a round number"""
    often = {33: 40, 65: 24, 101: 16, 129: 12, 257: 8, 513: 4, 1001: 2, 1025: 2, 2049: 2, 4097: 1}
    for n_pairs, times in often.items():
        calls = [(16, n_pairs, True)] * times
        values = answers(problem.dot_product_variance, calls, example.random_seeds(rng, times))
        call = f"dot_product_variance(16, {n_pairs}, scaled=True)"
        mean = sum(variance(value, call) for value in values) / times
        checks.check_that(mean, many_variances.mean_of_many_pairs, call, times)
    sizes = [(1000, 200), (1000, 201), (1001, 200), (3, 5002), (3, 5003)]
    results = [
        answers(
            problem.dot_product_variance, [(*size, True, example.seeded(seed)) for size in sizes]
        )
        for seed in example.random_seeds(rng, 2)
    ]
    # With a single seed, two variances may be equal by chance.
    for one, other in [(0, 1), (0, 2), (3, 4)]:
        same = all(math.isclose(each[one], each[other], rel_tol=1e-6) for each in results)
        call = f"dot_product_variance with d_k and n_pairs {sizes[one]}, then {sizes[other]}"
        message = "With the same seed, both results are equal, so some pairs were left out."
        checks.require(not same, f"{call}\n{message}")
