"""Tests of problem 03. Run them with `uv run pytest` in this folder."""

import math
from functools import partial

import pytest
import torch

from grader.run import compare
from grader.run.calls import answers
from grader.run.checks import (
    check,
    check_form,
    check_gradients,
    check_layer,
    check_that,
    gradients,
    require,
    set_weights,
)
from shared.oracles import modules
from shared.oracles import scaled_attention as oracles
from shared.three_layers import check_long_sequence
from shared.worked_example import (
    LAYERS,
    K,
    Q,
    V,
    check_layers,
    check_like,
    check_like_in_use,
    check_random_start,
    check_same_gradients,
    check_weights_are_kept,
    copied,
    holding,
    left_alone,
    nothing_left_behind,
    of_any_size,
    random_weights,
    trained,
    turned,
)


def shapes(**tensors):
    """How a message names the shapes of these tensors."""
    return ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())


def check_attention(problem, q, k, v, what, **near):
    """Check what the function makes of q, k and v by the definition."""
    actual = problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone())
    call = f"scaled_dot_product_attention(q, k, v) with {what}"
    check(actual, oracles.output(q, k, v), call, **near)


def make_attention(problem, weights):
    """The student's ScaledAttention of these weights' dtype, holding them."""
    module = problem.ScaledAttention(len(weights["query.weight"]), bias="query.bias" in weights)
    return holding(module, weights)


def both(solution, problem, weights):
    """The reference's ScaledAttention and the student's, holding these weights."""
    n_embd, bias = len(weights["query.weight"]), "query.bias" in weights
    right = modules.made(weights, solution.ScaledAttention, n_embd, bias=bias)
    return right, make_attention(problem, weights)


def check_module(module, x, weights, call, **near):
    """Check what the module with these weights makes of x by the definition."""
    check(module(x.clone()), oracles.of_module(x, weights), call, **near)


def seeded(seed):
    """A generator of its own, with this seed."""
    return torch.Generator().manual_seed(seed)


def random_seeds(rng, number):
    """Seeds that are all different."""
    first = int(torch.randint(2**31, (), generator=rng.generator))
    return range(first, first + number)


def variance(value, call):
    """A value of dot_product_variance as a float, if it may be a variance at all."""
    compare.check_number(value, -1e-3, math.inf, call, "a variance, so not negative")
    return float(value)


# scaled_dot_product_attention


@pytest.mark.points(0.5)
def test_attention_weights(problem, rng):
    """The weights of scaled_dot_product_attention are the softmax of the scaled scores"""
    # No two of these sizes, their halves, their squares and their roots are alike.
    sizes = {"d_k": 11, "n": 6, "m": 7}
    q, k = rng.normal(6, 11), rng.normal(7, 11)
    v = torch.eye(7)  # so the averages are the weights themselves
    check_attention(problem, q, k, v, f"{shapes(q=q, k=k)} and the identity as v", sizes=sizes)


@pytest.mark.points(0.5)
def test_worked_example(problem):
    """scaled_dot_product_attention gives the tables of the worked example"""
    attention = problem.scaled_dot_product_attention
    # With the rows of the identity as values, the averages are the weights themselves.
    weights = attention(Q.clone(), K.clone(), torch.eye(4))
    call = "scaled_dot_product_attention(Q, K, identity)"
    check(weights, oracles.WEIGHTS, call)
    output = attention(Q.clone(), K.clone(), V.clone())
    check(output, oracles.OUTPUT, "scaled_dot_product_attention(Q, K, V)")


@pytest.mark.points(0.75)
@pytest.mark.parametrize("d_k", [6, 12, 50, 64, 256, 3000])
def test_scores_are_divided_by_the_root_of_d_k(problem, rng, d_k):
    """scaled_dot_product_attention divides by the square root of the d_k that it is given"""
    q, k, v = rng.normal(4, d_k), rng.normal(5, d_k), torch.eye(5)
    what = f"d_k = {d_k} and the identity as v"
    check_attention(problem, q, k, v, what, sizes={"d_k": d_k})


@pytest.mark.points(1.25)
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
    q, k = rng.normal(*leading, n, d_k), rng.normal(*leading, m, d_k)
    v = rng.normal(*leading, m, d_v)
    check_attention(problem, q, k, v, shapes(q=q, k=k, v=v))


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    "sizes",
    [(1, 4, 3, 5, 2), (2, 1, 3, 5, 4), (3, 4, 1, 5, 2), (2, 4, 3, 1, 5), (2, 4, 3, 5, 1), (1,) * 5],
    ids=["one in a batch", "one query", "one key", "d_k = 1", "d_v = 1", "all 1"],
)
def test_attention_keeps_sizes_of_one(problem, rng, sizes):
    """scaled_dot_product_attention keeps every dimension, even one of size 1"""
    batch, n, m, d_k, d_v = sizes
    q, k, v = rng.normal(batch, n, d_k), rng.normal(batch, m, d_k), rng.normal(batch, m, d_v)
    check_attention(problem, q, k, v, shapes(q=q, k=k, v=v))


@pytest.mark.points(0.25)
def test_attention_leaves_its_arguments_alone(problem, rng):
    """scaled_dot_product_attention changes neither its arguments nor the random state"""
    q, k, v = rng.normal(3, 5), rng.normal(4, 5), rng.normal(4, 2)
    call = "scaled_dot_product_attention(q, k, v)"
    with nothing_left_behind(call), left_alone(call, q=q, k=k, v=v):
        check_form(problem.scaled_dot_product_attention(q, k, v), torch.empty(3, 2), call)


@pytest.mark.points(0.25)
def test_attention_takes_transposed_tensors(problem, rng):
    """scaled_dot_product_attention takes tensors that were transposed, as they are"""
    q, k, v = (turned(rng.normal(2, 3, *sizes)) for sizes in [(4, 6), (5, 6), (5, 7)])
    check_attention(problem, q, k, v, "transposed tensors")


@pytest.mark.points(0.25)
def test_attention_with_many_keys(problem, rng):
    """scaled_dot_product_attention averages many keys and large values, also with small weights"""
    q, k, v = rng.normal(2, 5) / 10, rng.normal(300, 5), 1000 * (2 + rng.normal(300, 3))
    # To the second query key 0 scores 14 and all others 0, so each of their weights is 8e-7.
    q[1] = torch.tensor([14 * math.sqrt(5), 0, 0, 0, 0])
    k[:, 0], k[0, 0], k[1], v[0] = 0, 1, 0, 0
    what = "300 keys, values near 2000, for the second query one score of 14 where all others are 0"
    check_attention(problem, q, k, v, f"{what}; k[1] and v[0] are 0")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_attention_keeps_the_dtype(problem, rng, dtype):
    """scaled_dot_product_attention returns the dtype that came in, with its precision"""
    q, k, v = (rng.normal(n, d, dtype=dtype) for n, d in [(3, 7), (4, 7), (4, 2)])
    what = f"tensors in {str(dtype).removeprefix('torch.')}"
    check_attention(problem, q, k, v, what, all_digits=True)


@pytest.mark.points(0.5)
def test_attention_with_large_scores(problem, rng):
    """scaled_dot_product_attention stays right when scores are large and lie far apart"""
    q, k = torch.zeros(4, 16), torch.zeros(3, 16)
    # The scores of query i and key j, before they are divided by 4, are centre_i + spread_i * j.
    q[:, 0], q[:, 1] = torch.tensor([-4000, 0, 4000, 0]), torch.tensor([4, -2, 3, 8000])
    k[:, 0], k[:, 1] = 1, torch.arange(3)
    v = rng.normal(3, 5)
    # float32 rounds a score in the thousands to three or four digits after the point.
    check_attention(problem, q, k, v, "scaled scores near -1000, 0 and 1000", atol=5e-3)


@pytest.mark.points(1)
def test_attention_lets_gradients_through(problem, rng):
    """Gradients flow through scaled_dot_product_attention to q, k and v"""
    inputs = {"q": rng.normal(2, 3, 5), "k": rng.normal(2, 4, 5), "v": rng.normal(2, 4, 2)}
    upstream = rng.normal(2, 3, 2)
    expected = oracles.slopes(inputs, upstream)
    inputs = {name: tensor.requires_grad_() for name, tensor in inputs.items()}
    call = "scaled_dot_product_attention(q, k, v)"
    # Copies, so that nothing here depends on whether arguments are left alone.
    output = problem.scaled_dot_product_attention(**copied(inputs))
    check_gradients(gradients(output, inputs, upstream, call), expected, call)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("d_k", [64, 256, 512, 1024])
def test_attention_keeps_the_gradient_of_long_vectors(problem, rng, d_k):
    """With the scale, long vectors get a gradient that would vanish without it"""
    q, k, v = rng.normal(1, d_k), rng.normal(2, d_k), torch.tensor([[1.0], [0.0]])
    # Moved along q until its scores are 1.5 standard deviations above 0 and below, as is common.
    scores = 1.5 * math.sqrt(d_k) * torch.tensor([[1.0], [-1.0]])
    k += (scores - k @ q.T) * q / (q @ q.T)
    call = f"scaled_dot_product_attention(q, k, v) with d_k = {d_k} and scores ± {scores[0, 0]:.0f}"
    q.requires_grad_()
    upstream = torch.ones(1, 1)
    output = problem.scaled_dot_product_attention(q.clone(), k.clone(), v)
    slope = gradients(output, {"q": q}, upstream, call)["q"]
    check_that(slope, oracles.does_not_vanish, call, k)


# ScaledAttention


@pytest.mark.points(0.5)
def test_layers(problem):
    """ScaledAttention has query, key and value alone, with a bias unless bias=False"""
    for module, n_embd, bias in [
        (problem.ScaledAttention(), 768, True),
        (problem.ScaledAttention(6), 6, True),
        (problem.ScaledAttention(n_embd=5, bias=False), 5, False),
    ]:
        check_layers(module, n_embd, bias)
    check_random_start(lambda: problem.ScaledAttention(4), LAYERS, "ScaledAttention(4)")


@pytest.mark.points(0.5)
def test_module_weights(problem, rng):
    """The weights of ScaledAttention are the softmax of its scaled scores"""
    weights, x = random_weights(rng, 7), torch.eye(5, 7).repeat(2, 1, 1)
    # Each token is its own value, so the average at the places of the tokens is the weights.
    weights |= {"value.weight": torch.eye(7), "value.bias": torch.zeros(7)}
    call = "ScaledAttention(7)(x), where value i is 1 at place i and 0 elsewhere"
    expected = oracles.of_module(x, weights)
    actual = make_attention(problem, weights)(x.clone())
    check_form(actual, x, call)
    check(actual[..., :5], expected[..., :5], call, sizes={"n_embd": 7, "T": 5})
    check(actual, expected, call)


@pytest.mark.points(1.25)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [(2, 5, 6), (3, 4, 7), (4, 3, 5)], ids=str)
def test_module(problem, rng, shape, bias):
    """ScaledAttention makes queries, keys and values from x, and gives their attention"""
    weights, x = random_weights(rng, shape[-1], bias=bias), rng.normal(*shape)
    x[0, 1] = 0  # a token like any other
    module = make_attention(problem, weights)
    call = f"ScaledAttention({shape[-1]}, bias={bias})(x) with x of shape {shape}, x[0, 1] is 0"
    check_module(module, x, weights, call)
    check_module(module.eval(), x, weights, f"{call}, after eval()")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("shape", [(1, 3, 5), (4, 1, 3), (2, 3, 1)], ids=str)
def test_module_keeps_sizes_of_one(problem, rng, shape):
    """ScaledAttention keeps every dimension, even one of size 1"""
    weights, x = random_weights(rng, shape[-1]), rng.normal(*shape)
    call = f"ScaledAttention({shape[-1]})(x) with x of shape {shape}"
    check_module(make_attention(problem, weights), x, weights, call)


@pytest.mark.points(0.25)
def test_module_leaves_x_and_weights_alone(problem, rng):
    """ScaledAttention changes neither x nor its weights nor the global random state"""
    weights, x = random_weights(rng, 4), rng.normal(2, 3, 4)
    module = make_attention(problem, weights)
    with nothing_left_behind("ScaledAttention(4)(x)"), left_alone("ScaledAttention(4)(x)", x=x):
        check_form(module(x), x, "ScaledAttention(4)(x)")
    check_weights_are_kept(module, weights, "ScaledAttention(4)(x)")


@pytest.mark.points(0.25)
def test_module_takes_transposed_tensors(problem, rng):
    """ScaledAttention takes an x that was transposed, as it is"""
    weights, x = random_weights(rng, 5), turned(rng.normal(2, 3, 5))
    check_module(
        make_attention(problem, weights), x, weights, "ScaledAttention(5)(x), transposed x"
    )


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_module_keeps_the_dtype(problem, rng, dtype):
    """ScaledAttention returns the dtype that came in, with its precision"""
    weights, x = random_weights(rng, 5, dtype=dtype), rng.normal(2, 3, 5, dtype=dtype)
    name = str(dtype).removeprefix("torch.")
    module = make_attention(problem, weights)
    check_module(module, x, weights, f"ScaledAttention(5)(x) in {name}", all_digits=True)


@pytest.mark.points(0.25)
def test_module_with_large_scores(problem, rng):
    """ScaledAttention stays right when scores are large in one sequence and small in another"""
    weights, x = random_weights(rng, 4), rng.normal(2, 3, 4)
    x[0] *= 100
    call = "ScaledAttention(4)(x) with scores of some thousands in x[0]"
    expected = oracles.of_module(x, weights)
    actual = check_form(make_attention(problem, weights)(x.clone()), x, call)
    # float32 leaves two digits after the point to such scores, and the values are some hundreds.
    check(actual[0], expected[0], f"{call}, its output [0]", atol=1.0)
    check(actual[1], expected[1], f"{call}, its output [1]")


@pytest.mark.points(0.25)
def test_module_remembers_nothing(problem, rng):
    """A call of ScaledAttention depends on x and the current weights, not on earlier calls"""
    weights, x = random_weights(rng, 4), rng.normal(2, 3, 4)
    module = make_attention(problem, weights)
    check_module(module, x, weights, "ScaledAttention(4)(x)")
    other, longer = rng.normal(2, 3, 4), rng.normal(3, 5, 4)
    check_module(module, other, weights, "the second call, with another x")
    check_module(module, longer, weights, "the third call, with a longer x")
    weights = random_weights(rng, 4)
    set_weights(module, weights)
    check_module(module, x, weights, "the first x again, after a change of the weights")
    module.eval()
    for again in (x, other):
        check_module(module, again, weights, "another call, after eval()")


@pytest.mark.points(0.5)
def test_module_lets_gradients_through(problem, rng):
    """Gradients flow through ScaledAttention to x and to the layers"""
    weights, x, upstream = random_weights(rng, 2), rng.normal(4, 3, 2), rng.normal(4, 3, 2)
    module = make_attention(problem, weights)
    expected = oracles.slopes_of_module(x, weights, upstream)
    inputs = {"x": x.requires_grad_(), **trained(module, weights)}
    actual = gradients(module(x), inputs, upstream, "ScaledAttention(2)(x)")
    check_gradients(actual, expected, "ScaledAttention(2)(x)", atol=1e-4)


# Both


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_attention_is_your_own(problem, rng):
    """Attention is written without PyTorch's own attention functions and modules"""
    call, x = "scaled_dot_product_attention(q, k, v)", rng.normal(1, 3, 4)
    for q, k, v in [
        (rng.normal(2, 3), rng.normal(4, 3), rng.normal(4, 3)),
        (rng.normal(4, 64, 64) for _ in "qkv"),
    ]:
        check_form(problem.scaled_dot_product_attention(q, k, v), torch.empty_like(q), call)
    check_form(problem.ScaledAttention(4)(x), x, "ScaledAttention(4)(x)")


# dot_product_variance


@pytest.mark.points(2.25)
@pytest.mark.parametrize("scaled", [False, True], ids=["unscaled", "scaled"])
@pytest.mark.parametrize("d_k", [5, 20])
def test_variance(problem, rng, d_k, scaled):
    """dot_product_variance is about d_k, and about 1 when the dot products are scaled"""
    n_pairs, (seed,) = 2000, random_seeds(rng, 1)
    value = problem.dot_product_variance(d_k, n_pairs, scaled, generator=seeded(seed))
    call = f"dot_product_variance({d_k}, {n_pairs}, scaled={scaled})"
    check_that(variance(value, call), oracles.is_variance, call, d_k, n_pairs, scaled)


@pytest.mark.points(0.5)
def test_variance_uses_the_generator(problem, rng):
    """dot_product_variance draws all its numbers from the generator that it is given"""
    call = "dot_product_variance(6, 40, False, generator)"
    seed, *others = random_seeds(rng, 6)

    def value(generator, global_seed):
        torch.default_generator.manual_seed(global_seed)
        before = torch.get_rng_state()
        with left_alone(call):
            found = variance(problem.dot_product_variance(6, 40, False, generator), call)
        unchanged = torch.equal(torch.get_rng_state(), before)
        message = "The global random state changed; all numbers should come from the generator."
        require(unchanged, f"{call}\n{message}")
        return found

    first = value(seeded(seed), 1)
    again = value(seeded(seed), 2)
    check_that((first, again), oracles.same_again, call, "The same seed")
    differ = any(value(seeded(other), 1) != first for other in others)
    require(differ, f"{call}\nSix generators with other seeds all gave {first:.6g}.")
    used = seeded(seed)
    torch.rand(5, generator=used)
    message = f"{call}\nA generator that had been drawn from before gave the value of a fresh one."
    require(value(used, 1) != first, message)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("d_k", [7, 64, 1024])
def test_variance_is_scaled_exactly(problem, rng, d_k):
    """For the same seed dot_product_variance is exactly d_k times as large when it is unscaled"""
    (seed,) = random_seeds(rng, 1)
    call = f"dot_product_variance({d_k}, 50, scaled, generator), with one seed for all calls"
    values = []
    for scaled in (False, True, False):
        torch.default_generator.manual_seed(len(values))  # no number should come from here
        values.append(problem.dot_product_variance(d_k, 50, scaled, generator=seeded(seed)))
    values = tuple(variance(value, call) for value in values)
    check_that(values, oracles.scaled_exactly, call, d_k)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("n_pairs", [3, 25])
def test_variance_of_these_very_pairs(problem, rng, n_pairs):
    """dot_product_variance is the variance of the pairs that it draws, not a multiple of it"""
    seeds, call = random_seeds(rng, 5), f"dot_product_variance(16, {n_pairs}, False, generator)"
    values = [problem.dot_product_variance(16, n_pairs, False, seeded(seed)) for seed in seeds]
    values = [variance(value, call) for value in values]
    check_that(values, oracles.of_these_pairs, call, n_pairs, [*seeds])


@pytest.mark.points(0.5)
def test_variance_of_the_population(problem, rng):
    """dot_product_variance is the variance of n_pairs numbers as a population, not rounded"""
    call = "dot_product_variance(16, 2, scaled=False)"
    seeds = random_seeds(rng, 400)
    values = answers(problem.dot_product_variance, [(16, 2, False, seeded(s)) for s in seeds])
    values = [variance(value, call) for value in values]
    check_that(sum(values) / 400, oracles.mean_of_two_pairs, call)
    small = sum(value < 0.8 for value in values) / 400
    check_that(small, oracles.share_of_small_ones, f"the share of small values of {call}")
    rounded = all(value in (round(value, 4), float(f"{value:.6g}")) for value in values)
    require(not rounded, f"{call}\nIt returned {values[0]}; the variance should not be rounded.")


@pytest.mark.points(0.25)
def test_variance_without_a_generator(problem, rng):
    """dot_product_variance draws from torch's global generator when it is given none"""
    call = "dot_product_variance(6, 40, False)"
    seed, *others = random_seeds(rng, 6)

    def value(global_seed):
        torch.default_generator.manual_seed(global_seed)
        return variance(problem.dot_product_variance(6, 40, False), call)

    first, again = value(seed), value(seed)
    check_that((first, again), oracles.same_again, call, "The same torch.manual_seed")
    differ = any(value(other) != first for other in others)
    require(differ, f"{call}\nAfter six different torch.manual_seed it always gave {first:.6g}.")


# --- hidden tests ---

from shared.oracles import many_variances  # noqa: E402

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
    """scaled_dot_product_attention is right for other sizes, and so are its gradients"""
    inputs = {
        "q": rng.normal(*leading, n, d_k).requires_grad_(),
        "k": rng.normal(*leading, m, d_k).requires_grad_(),
        "v": rng.normal(*leading, m, d_v).requires_grad_(),
    }
    upstream = rng.normal(*leading, n, d_v)
    call = f"scaled_dot_product_attention(q, k, v) with {shapes(**inputs)}"
    expected = solution.scaled_dot_product_attention(**inputs)
    actual = problem.scaled_dot_product_attention(**copied(inputs))
    check(actual, expected, call)
    # With one key its weight is 1 whatever q and k are, so a formula may leave them out.
    wanted = inputs if m > 1 else {"v": inputs["v"]}
    # A sum of a thousand numbers is rounded a thousand times.
    check_same_gradients(actual, expected, wanted, upstream, call, atol=1e-3)


@pytest.mark.points(0.25)
def test_hidden_attention_to_other_numbers(problem, solution, rng):
    """scaled_dot_product_attention is right for numbers of any size, in any order in memory"""
    shapes = {"q": (2, 3, 4, 5), "k": (2, 3, 6, 5), "v": (2, 3, 6, 2)}

    def inputs(learning="qkv", **sizes):
        # In float64, as float32 leaves few digits of scores that are large and lie close together.
        normal = partial(rng.normal, dtype=torch.float64)
        tensors = {n: turned(normal(*shapes[n])) * sizes.get(n, 1) for n in shapes}
        return {n: tensor.requires_grad_(n in learning) for n, tensor in tensors.items()}

    far = inputs(learning="v")
    far["q"][..., 0] *= 1e5
    far["k"][..., 0] = 1  # so it adds the same to all scores of a query
    cases = {
        "ordinary numbers": inputs(),
        "large queries": inputs(q=1e6, k=1e-6),
        "large keys": inputs(q=1e-6, k=1e6),
        "large values": inputs(v=1e6),
        "scores far from 0": far,
        "queries alone that learn": inputs(learning="q"),
        "keys alone that learn": inputs(learning="k"),
    }
    calls = [(f"scaled_dot_product_attention(q, k, v) with {what}", cases[what]) for what in cases]
    right, code = solution.scaled_dot_product_attention, problem.scaled_dot_product_attention
    check_like(right, code, rng, calls)


@pytest.mark.points(0.75)
def test_hidden_large_scores(problem, solution, rng):
    """scaled_dot_product_attention is stable when queries, keys or batches lie far apart"""
    q, k = torch.zeros(2, 2, 3, 16), torch.zeros(2, 2, 4, 16)
    q[..., 0] = torch.tensor([-4000, 0, 4000])
    q[1, 0, :, 0], q[0, 1, :, 0] = -8000, 8000
    q[..., 1] = torch.tensor([4, -2, 3])
    k[..., 0], k[..., 1] = 1, torch.arange(4)
    q[1, 1, :, 1], k[1, 1, :, 1] = 4, torch.tensor([-2000, 2000, 1999, 1500])
    v, upstream = rng.normal(2, 2, 4, 5), rng.normal(2, 2, 3, 5)
    inputs = {"q": q.requires_grad_(), "k": k.requires_grad_(), "v": v.requires_grad_()}
    call = "scaled_dot_product_attention(q, k, v) with scores of thousands"
    expected = solution.scaled_dot_product_attention(**inputs)
    actual = problem.scaled_dot_product_attention(**copied(inputs))
    atol = 5e-3  # float32 rounds a score in the thousands to three or four digits after the point
    check(actual, expected, call, atol=atol)
    found = gradients(actual, inputs, upstream, call)
    wanted = modules.gradients(expected, inputs, upstream)
    check(found["v"], wanted["v"], f"the gradient of {call} by v", atol=atol)
    # Those by q and k are sums of large numbers that cancel, so they are not compared.
    for name in ("q", "k"):
        finite = bool(found[name].isfinite().all())
        require(finite, f"{call}\nThe gradient by {name} has NaN or inf in it.")


@pytest.mark.points(0.5)
def test_hidden_attention_remembers_nothing(problem, solution, rng):
    """A second call of attention changes nothing about the first, nor the random state"""
    call = "scaled_dot_product_attention(q, k, v)"
    q, k, v = rng.normal(2, 3, 6), rng.normal(2, 4, 6), rng.normal(2, 4, 5)
    others = rng.normal(2, 4, 6)
    with nothing_left_behind(call):
        first = problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone())
        second = problem.scaled_dot_product_attention(q.clone(), others.clone(), v.clone())
        check(first, solution.scaled_dot_product_attention(q, k, v), f"{call}, after a second call")
        expected = solution.scaled_dot_product_attention(q, others, v)
        check(second, expected, f"the second call, {call}")
        for tensor in (q, k, v):
            tensor.mul_(1.5)
        expected = solution.scaled_dot_product_attention(q, k, v)
        third = problem.scaled_dot_product_attention(q.clone(), k.clone(), v.clone())
        check(third, expected, f"{call} with other numbers")


@pytest.mark.points(1.75)
@pytest.mark.parametrize(
    ("shape", "bias"),
    [
        ((3, 7, 5), True),
        ((2, 9, 16), False),
        ((4, 2, 11), True),
        ((1, 1, 4), False),
        ((5, 5, 5), True),
        ((1, 6, 40), False),
        ((1, 70, 2), True),
        ((300, 2, 3), False),
        ((1, 2, 130), True),
    ],
    ids=str,
)
def test_hidden_module(problem, solution, rng, shape, bias):
    """ScaledAttention and its gradients are right for other sizes, in training and in eval"""
    _, length, n_embd = shape
    weights = random_weights(rng, n_embd, bias=bias)
    reference = modules.made(weights, solution.ScaledAttention, n_embd, bias=bias)
    module = problem.ScaledAttention(n_embd=n_embd, bias=bias)
    for name in LAYERS:
        check_layer(module, name, n_embd, n_embd, bias=bias)
    set_weights(module, weights)
    # With one position its weight is 1, whatever its query and key are.
    names = weights if length > 1 else {"value.weight": None}
    for mode in (True, False):
        module.train(mode)
        x, upstream = rng.normal(*shape).requires_grad_(), rng.normal(*shape)
        call = f"ScaledAttention({n_embd}, bias={bias})(x) with x of shape {shape}"
        call += "" if mode else ", after eval()"
        expected, slopes = reference(x), modules.slopes(reference, x, upstream, names)
        actual = module(x=x)
        check(actual, expected, call, atol=1e-4)
        found = gradients(actual, {"x": x, **trained(module, names)}, upstream, call)
        check_gradients(found, slopes, call, atol=1e-3)


@pytest.mark.points(0.25)
def test_hidden_module_with_a_long_sequence(problem, solution, rng):
    """ScaledAttention takes a sequence of 1100 tokens, and looks at all of them"""
    weights, x = random_weights(rng, 2), rng.normal(1, 1100, 2)
    right, module = both(solution, problem, weights)
    check_long_sequence(right, module, x, "ScaledAttention(2)(x) with x of shape (1, 1100, 2)")


@pytest.mark.points(0.25)
def test_hidden_module_with_numbers_of_any_size(problem, solution, rng):
    """ScaledAttention is right for tokens, keys, values and scores of any size"""
    double = torch.float64  # as float32 leaves few digits of scores near a million
    tokens, usual = rng.normal(2, 4, 6, dtype=double), random_weights(rng, 6, dtype=double)
    for what, x, weights in of_any_size(tokens, usual):
        case = (f"ScaledAttention(6)(x) with {what}", {"x": x.requires_grad_()})
        pair = both(solution, problem, weights)
        check_like(*pair, rng, [case], atol=1e-4)


@pytest.mark.points(0.25)
def test_hidden_ways_of_use(problem, solution, rng):
    """ScaledAttention is right in evaluation, with other weights, and by default"""
    x, weights, others = rng.normal(3, 4, 5), random_weights(rng, 5), random_weights(rng, 5)
    pair = both(solution, problem, weights)
    check_like_in_use(*pair, rng, x, others, "ScaledAttention(5)(x)", atol=1e-3)
    right = modules.made(others, solution.ScaledAttention, 5)
    module = holding(problem.ScaledAttention(5), others)
    case = ("ScaledAttention(5)(x)", {"x": x.requires_grad_()})
    check_like(right, module, rng, [case], atol=1e-3)


@pytest.mark.points(0.75)
def test_hidden_precision(problem, solution, rng):
    """Both keep all digits of float64, and so do their gradients; two modules are independent"""
    double = torch.float64
    sizes = {"q": (2, 3, 7), "k": (2, 4, 7), "v": (2, 4, 3)}
    case = {name: rng.normal(*size, dtype=double).requires_grad_() for name, size in sizes.items()}
    right, code = solution.scaled_dot_product_attention, problem.scaled_dot_product_attention
    cases = [("scaled_dot_product_attention(q, k, v) in float64", case)]
    check_like(right, code, rng, cases, all_digits=True)
    many = [random_weights(rng, n_embd, dtype=double) for n_embd in (6, 10)]
    pairs = [both(solution, problem, weights) for weights in many]
    for n_embd, pair in zip((6, 10), pairs, strict=True):
        x = rng.normal(3, 4, n_embd, dtype=double).requires_grad_()
        case = (f"ScaledAttention({n_embd})(x) in float64", {"x": x})
        check_like(*pair, rng, [case], all_digits=True)


@pytest.mark.points(0.5)
def test_hidden_arguments_and_weights_are_left_alone(problem, rng):
    """Attention changes neither its arguments nor its weights nor the random state"""
    q, k, v = rng.normal(2, 2, 3, 5), rng.normal(2, 2, 4, 5), rng.normal(2, 2, 4, 6)
    x, weights = rng.normal(1, 6, 4), random_weights(rng, 4)
    module = make_attention(problem, weights)
    call = "scaled_dot_product_attention(q, k, v) and ScaledAttention(4)(x)"

    def call_both():
        attended = problem.scaled_dot_product_attention(q, k, v)
        check_form(attended, torch.empty(2, 2, 3, 6), "scaled_dot_product_attention(q, k, v)")
        check_form(module(x), x, "ScaledAttention(4)(x)")

    with nothing_left_behind(call), left_alone(call, q=q, k=k, v=v, x=x):
        call_both()
    with torch.no_grad(), left_alone(call):
        call_both()
    check_weights_are_kept(module, weights, "ScaledAttention(4)(x)")


@pytest.mark.points(1)
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
    """dot_product_variance is right for other lengths, from a generator or without one"""
    seed, other = random_seeds(rng, 2)
    asked = {"d_k": d_k, "n_pairs": n_pairs, "scaled": scaled}
    generator = seeded(seed)
    given, later = (problem.dot_product_variance(**asked, generator=generator) for _ in range(2))
    torch.default_generator.manual_seed(other)
    drawn, again = (problem.dot_product_variance(d_k, n_pairs, scaled, None) for _ in range(2))
    call = f"dot_product_variance({d_k}, {n_pairs}, scaled={scaled})"
    values = [variance(value, call) for value in (given, later, drawn, again)]
    for value in values:
        check_that(value, oracles.is_variance, call, d_k, n_pairs, scaled)
    given, later, drawn, again = values
    for first, second, of in [(given, later, "the same generator"), (drawn, again, "no generator")]:
        message = f"Two calls with {of}, one after the other, both gave {first:.6g}."
        rounded = first == round(first, 4)  # so it agrees by chance, which another test tells
        require(first != second or rounded, f"{call}\n{message} Each draws numbers of its own.")


@pytest.mark.points(0.75)
def test_hidden_variance_of_two_pairs(problem, rng):
    """dot_product_variance uses exactly n_pairs pairs, and divides by n_pairs, if scaled too"""
    call = "dot_product_variance(16, 2, scaled=True)"
    values = answers(problem.dot_product_variance, [(16, 2, True)] * 300, random_seeds(rng, 300))
    values = [variance(value, call) for value in values]
    check_that(sum(values) / 300, many_variances.mean_of_two_scaled_pairs, call)
    small, call = sum(value < 0.05 for value in values) / 300, f"the share of small values: {call}"
    check_that(small, many_variances.share_of_small_scaled_ones, call)


@pytest.mark.points(0.5)
def test_hidden_variance_from_seed_to_seed(problem, rng):
    """dot_product_variance varies from seed to seed as it does for normal numbers"""
    call = "dot_product_variance(1, 50, scaled=True)"
    calls = [(1, 50, True, seeded(seed)) for seed in random_seeds(rng, 160)]
    # The same seed for all, so that what doesn't come from the generators is alike.
    values = answers(problem.dot_product_variance, calls, seeds=[1] * 160)
    values = [variance(value, call) for value in values]
    mean = sum(values) / 160
    check_that(mean, many_variances.mean_of_products, call)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / 160)
    check_that(spread, many_variances.spread_of_products, f"{call}, for 160 seeds")


@pytest.mark.points(0.25)
def test_hidden_variance_of_one_pair_more(problem, rng):
    """dot_product_variance counts all pairs alike, also one more than a round number of them"""
    for n_pairs, times in [
        (33, 40),
        (65, 24),
        (101, 16),
        (129, 12),
        (257, 8),
        (513, 4),
        (1001, 2),
        (1025, 2),
        (2049, 2),
        (4097, 1),
    ]:
        calls = [(16, n_pairs, True)] * times
        values = answers(problem.dot_product_variance, calls, random_seeds(rng, times))
        call = f"dot_product_variance(16, {n_pairs}, scaled=True)"
        mean = sum(variance(value, call) for value in values) / times
        check_that(mean, many_variances.mean_of_many_pairs, call, times)
    sizes = [(1000, 200), (1000, 201), (1001, 200), (3, 5002), (3, 5003)]
    found = [
        answers(problem.dot_product_variance, [(*size, True, seeded(seed)) for size in sizes])
        for seed in random_seeds(rng, 2)
    ]
    # For one seed two variances may agree by chance.
    for one, other in [(0, 1), (0, 2), (3, 4)]:
        same = all(math.isclose(each[one], each[other], rel_tol=1e-6) for each in found)
        call = (
            f"dot_product_variance, scaled, with d_k and n_pairs {sizes[one]}, then {sizes[other]}"
        )
        message = (
            "With the same seed both gave the same, so some pairs or entries have no part in it."
        )
        require(not same, f"{call}\n{message}")
