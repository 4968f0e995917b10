"""Tests of problem 02. Run them with `uv run pytest` in this folder."""

import math
import operator

import pytest
import torch

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

LAYERS = ("query", "key", "value")


def dot(a, b):
    """The dot product of two lists of numbers."""
    return sum(map(operator.mul, a, b))


def softmax_by_hand(row):
    """The softmax of a list of numbers: e to the power of each, divided by the sum of all."""
    largest = max(row)
    powers = [math.exp(entry - largest) for entry in row]
    total = sum(powers)
    return [power / total for power in powers]


def average_by_hand(weights, values):
    """The weighted average of some vectors."""
    return [dot(weights, column) for column in zip(*values, strict=True)]


def attention_by_hand(q, k, v):
    """Attention of one sequence, one query at a time: the definition, made runnable."""
    output = []
    for query in q:
        scores = [dot(query, key) for key in k]
        output.append(average_by_hand(softmax_by_hand(scores), v))
    return output


def layer_by_hand(rows, weights, layer):
    """What an nn.Linear does with each row: a dot product with each row of its weight."""
    weight = weights[f"{layer}.weight"].tolist()
    bias = weights[f"{layer}.bias"].tolist() if f"{layer}.bias" in weights else [0.0] * len(weight)
    return [[dot(row, w) + b for w, b in zip(weight, bias, strict=True)] for row in rows]


def self_attention_by_hand(x, weights):
    """What SimpleAttention with these weights makes of x, one sequence at a time."""
    output = []
    for rows in x.tolist():
        q, k, v = (layer_by_hand(rows, weights, layer) for layer in LAYERS)
        output.append(attention_by_hand(q, k, v))
    return torch.tensor(output, dtype=x.dtype)


def gradients_by_hand(x, weights, upstream):
    """Every gradient by its definition: nudge one number a little and see how the result moves."""
    nudge = 1e-5
    numbers = {"x": x, **weights}

    def result(name, index, change):
        moved = numbers[name].clone()
        moved.view(-1)[index] += change
        changed = {**numbers, name: moved}
        return float((self_attention_by_hand(changed["x"], changed) * upstream).sum())

    slopes = {}
    for name, tensor in numbers.items():
        slope = [
            (result(name, index, nudge) - result(name, index, -nudge)) / (2 * nudge)
            for index in range(tensor.numel())
        ]
        slopes[name] = torch.tensor(slope, dtype=x.dtype).reshape(tensor.shape)
    return slopes


def draw_weights(rng, n_embd, bias=True, dtype=torch.float64):
    """Random weights for the three layers, such that scores are neither flat nor extreme."""
    weights = {}
    for layer in LAYERS:
        weights[f"{layer}.weight"] = (rng.normal(n_embd, n_embd) * 1.2 * n_embd**-0.75).to(dtype)
        if bias:
            weights[f"{layer}.bias"] = (rng.normal(n_embd) * n_embd**-0.25).to(dtype)
    return weights


def draw_rows_far_apart(rng, batch, seq, n_embd):
    """An x and weights whose scores are moderate but for a constant per row, from -2000 to 2000."""
    x, weights = rng.normal(batch, seq, n_embd), draw_weights(rng, n_embd)
    x[..., 0] = torch.linspace(-2000, 2000, batch * seq, dtype=x.dtype).reshape(batch, seq)
    for layer in LAYERS:
        weights[f"{layer}.weight"][:, 0] = 0
    # Entry 0 of each query is the row's constant; entry 0 of each key is 1.
    weights["query.weight"][0] = 0
    weights["query.weight"][0, 0] = 1
    weights["query.bias"][0] = 0
    weights["key.weight"][0] = 0
    weights["key.bias"][0] = 1
    return x, weights


def build(problem, weights):
    """A SimpleAttention that holds these weights, in their dtype."""
    n_embd = len(weights["query.weight"])
    module = problem.SimpleAttention(n_embd, bias="query.bias" in weights)
    if weights["query.weight"].dtype == torch.float64:
        module = module.double()
    set_weights(module, weights)
    return module


def parameters_of(module):
    """All parameters by name, under each of its names if one has several."""
    return parameters(module)


def gradients_of(module, x, weights, upstream, call):
    """The gradients with respect to x and the weights.

    The bias of `key` is left out: it adds the same number to all scores of a row, and softmax
    ignores that, so its gradient is 0 in any case.
    """
    x = x.clone().requires_grad_()
    parameters = parameters_of(module)
    inputs = {"x": x}
    for name in weights:
        if name != "key.bias":
            require(
                parameters[name].requires_grad,
                f"{call}\n`{name}` is frozen (requires_grad is False), so it could never learn.",
            )
            inputs[name] = parameters[name]
    return gradients(module(x), inputs, upstream, call)


def check_attention(module, x, weights, call, **sizes):
    """Check what the module makes of x by the definition."""
    expected = self_attention_by_hand(x, weights)
    check(module(x.clone()), expected, call, sizes=sizes)


def check_left_alone(module, x, weights, call):
    """Check that a call changes neither x nor the module's weights."""
    before = x.clone()
    check_form(module(x), before, call)
    require(torch.equal(x, before), f"{call}\nYour code changed its argument x.")
    parameters = parameters_of(module)
    for name, weight in weights.items():
        unchanged = torch.equal(parameters[name].detach(), weight)
        require(unchanged, f"{call}\nYour code changed the layers' own numbers, in `{name}`.")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("n_embd", [6, 9])
def test_three_layers(problem, n_embd):
    """SimpleAttention has the layers query, key and value, each from n_embd to n_embd"""
    module = problem.SimpleAttention(n_embd)
    for layer in LAYERS:
        check_layer(module, layer, n_embd, n_embd)


@pytest.mark.points(0.25)
def test_defaults(problem):
    """SimpleAttention() is 768 wide and has biases"""
    module = problem.SimpleAttention()
    for layer in LAYERS:
        check_layer(module, layer, 768, 768)


@pytest.mark.points(1)
def test_attention_in_numbers(problem):
    """attention gives the numbers of the README's example: three positions, two numbers each"""
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    weights = {
        "query.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        "key.weight": torch.tensor([[1.0, 1.0], [0.0, 1.0]]),
        "value.weight": torch.tensor([[2.0, 0.0], [1.0, -1.0]]),
        **{f"{layer}.bias": torch.zeros(2) for layer in LAYERS},
    }
    expected = torch.tensor([[[1.5761, 0.0000], [1.1554, -0.2670], [1.5105, -0.1547]]])
    check(build(problem, weights)(x), expected, "attention(x) of the README's example", atol=6e-5)


def table(text):
    """The numbers of a table, row by row."""
    rows = [[float(number) for number in line.split()] for line in text.strip().splitlines()]
    return torch.tensor(rows, dtype=torch.float64)


Q = table("""
    1.16797418 -0.73724956 0.75041732 -0.1220419 1.70315355 0.31347885 0.34485802 0.4460984
    3.30107262 0.52084263 -0.30178335 1.6757843 -0.5155369 -2.57282086 0.7492196 -0.1116739
    1.79346332 1.43356091 1.04335097 -0.17879843 0.64886601 -1.36614847 0.23380491 0.87536806
    1.47103375 -1.58489204 -0.45911092 0.28391595 0.21250504 -1.61590866 -1.29484902 0.00475083
""")
K = table("""
    -0.27718816 -1.65065268 0.65895024 -0.30877976 0.08718337 -1.25869869 -0.189555 0.19835477
    0.34020432 0.52734301 0.70054018 0.02666352 -0.47575991 0.27451574 0.31178952 -0.80116187
    -0.32764932 -0.14549352 -0.40258405 0.75537362 1.05953459 -1.34530308 1.99241804 0.17674986
    -1.40543092 0.43389184 -0.07028518 0.10003431 1.26343057 -2.0707861 0.51659185 -1.03069964
""")
V = table("""
    -1.20455614 -0.78141984 -0.60550966 -0.49607676 0.05358656 0.31648808 1.97222775 0.97455048
    -0.22988732 -2.3585375 0.49206019 -0.74539263 -0.530485 -0.23619713 0.80175571 0.96790588
    -1.20769139 -1.33242785 -1.59215534 2.60984511 0.33729297 0.46552584 1.51418349 0.72913429
    0.5936924 -0.6305729 -0.95026899 0.87634056 -1.56283632 0.3099347 -0.36928654 1.2784266
""")
SCORES = table("""
    1.20239352 -0.44310134 1.479061 -0.80531921
    0.53823363 1.09303249 4.61797795 0.95396625
    -0.21525807 0.78011689 1.79464107 0.87754205
    4.11701088 -1.60160544 -0.03209583 0.24644341
""")


@pytest.mark.points(1)
def test_worked_example(problem):
    """attention of the course's 4 x 8 example goes from Q, K and V by way of the scores Q Kᵀ"""
    # x holds Q, K and V side by side, and each layer picks its part of x into its first 8 numbers.
    x = torch.cat([Q, K, V], dim=-1)[None]
    weights = {f"{layer}.bias": torch.zeros(24, dtype=torch.float64) for layer in LAYERS}
    for part, layer in enumerate(LAYERS):
        weights[f"{layer}.weight"] = torch.zeros(24, 24, dtype=torch.float64)
        for i in range(8):
            weights[f"{layer}.weight"][i, 8 * part + i] = 1
    output = [average_by_hand(softmax_by_hand(row), V.tolist()) for row in SCORES.tolist()]
    expected = torch.zeros(1, 4, 24, dtype=torch.float64)
    expected[0, :, :8] = torch.tensor(output, dtype=torch.float64)
    call = "attention(x) where the layers pick Q, K and V of the worked example out of x"
    check(build(problem, weights)(x), expected, call, atol=2e-7, sizes={"d_k": 8})


@pytest.mark.points(0.25)
def test_names_and_positions(problem, rng):
    """n_embd, bias and x can be given by name or by position, in this order"""
    weights, x = draw_weights(rng, 3, bias=False), rng.normal(2, 4, 3)
    expected = self_attention_by_hand(x, weights)
    for module, call in [
        (problem.SimpleAttention(3, False), "SimpleAttention(3, False)"),
        (problem.SimpleAttention(bias=False, n_embd=3), "SimpleAttention(bias=False, n_embd=3)"),
    ]:
        set_weights(module.double(), weights)
        check(module(x=x.clone()), expected, f"attention(x=x) with attention = {call}")


@pytest.mark.points(0.75)
def test_bias_can_be_left_out(problem, rng):
    """With bias=False no layer has a bias, and attention is right without"""
    module = problem.SimpleAttention(5, bias=False)
    for layer in LAYERS:
        check_layer(module, layer, 5, 5, bias=False)
    weights, x = draw_weights(rng, 5, bias=False), rng.normal(2, 3, 5)
    call = "attention(x) with attention = SimpleAttention(5, bias=False)"
    check_attention(build(problem, weights), x, weights, call, n_embd=5)


@pytest.mark.points(1.25)
@pytest.mark.parametrize(
    ("batch", "seq", "n_embd"),
    [(2, 3, 4), (3, 5, 2), (6, 2, 7), (1, 18, 3), (3, 1, 5), (1, 1, 2), (2, 3, 1)],
)
def test_attention_of_any_size(problem, rng, batch, seq, n_embd):
    """attention follows the definition softmax(q kᵀ) v, for each sequence of a batch by itself"""
    weights, x = draw_weights(rng, n_embd), rng.normal(batch, seq, n_embd)
    call = f"attention(x) with attention = SimpleAttention({n_embd}) and x {tuple(x.shape)}"
    check_attention(build(problem, weights), x, weights, call, n_embd=n_embd)


@pytest.mark.points(0.5)
def test_large_scores_apart_by_row(problem, rng):
    """attention stays right when the scores of some queries are near 2000, of others near -2000"""
    x, weights = draw_rows_far_apart(rng, 2, 4, 5)
    call = "attention(x) where the rows of scores lie between -2000 and 2000"
    check_attention(build(problem, weights), x, weights, call)


@pytest.mark.points(0.5)
def test_large_scores_within_a_row(problem, rng):
    """attention stays right when one key's score is thousands above the others"""
    weights, x = draw_weights(rng, 5), rng.normal(2, 4, 5)
    weights["query.weight"] *= 1e4
    call = "attention(x) where scores of the same row are thousands apart"
    check_attention(build(problem, weights), x, weights, call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_dtype_is_kept(problem, rng, dtype):
    """attention returns the dtype that came in, with its precision"""
    weights, x = draw_weights(rng, 4, dtype=dtype), rng.normal(2, 3, 4, dtype=dtype)
    call = f"attention(x) in {str(dtype).removeprefix('torch.')}"
    check_attention(build(problem, weights), x, weights, call)


@pytest.mark.points(1)
def test_gradients_flow(problem, rng):
    """Gradients flow to x and to the weights of all three layers"""
    weights, x, upstream = draw_weights(rng, 3), rng.normal(2, 4, 3), rng.normal(2, 4, 3)
    by_hand = gradients_by_hand(x, weights, upstream)
    found = gradients_of(build(problem, weights), x, weights, upstream, "attention(x)")
    for name, gradient in found.items():
        call = f"the gradient of attention(x) with respect to {name}"
        check(gradient, by_hand[name], call, rtol=1e-6, atol=1e-7)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_train_and_eval(problem, rng, mode):
    """attention is the same in training and in evaluation; nothing in it is left to chance"""
    weights, x = draw_weights(rng, 4), rng.normal(2, 3, 4)
    module = build(problem, weights)
    module.train(mode == "train")
    check_attention(module, x, weights, f"attention(x) after attention.{mode}()")


@pytest.mark.points(0.5)
def test_nothing_is_remembered(problem, rng):
    """Each call is about its own x and the present weights; nothing is left of other calls"""
    weights, first = draw_weights(rng, 4), rng.normal(2, 3, 4)
    module, expected = build(problem, weights), self_attention_by_hand(first, weights)
    output = module(first.clone())
    for x in [rng.normal(2, 3, 4), rng.normal(1, 5, 4), rng.normal(3, 2, 4), first]:
        call = f"attention(x) with x {tuple(x.shape)}, after a call with another x"
        check_attention(module, x, weights, call)
    check(output, expected, "the first result of attention(x), looked at after other calls")
    module.eval()
    for x in [rng.normal(2, 3, 4), first]:
        check_attention(module, x, weights, "attention(x) after attention.eval() and other calls")
    module.train()

    other_weights = draw_weights(rng, 4)
    build(problem, other_weights)(first)
    check_attention(module, first, weights, "attention(x), after a call of another attention")
    set_weights(module, other_weights)
    check_attention(module, first, other_weights, "attention(x), after its weights were changed")


@pytest.mark.points(0.25)
def test_x_and_weights_are_left_alone(problem, rng):
    """attention changes neither x nor its layers' weights"""
    weights, x = draw_weights(rng, 4), rng.normal(2, 3, 4)
    check_left_alone(build(problem, weights), x, weights, "attention(x)")


@pytest.mark.points(0.25)
def test_no_seed_is_set(problem, rng):
    """The layers start from random weights, and nothing sets a seed"""
    starts = []
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        module = problem.SimpleAttention(4, bias=True)
        for layer in LAYERS:
            check_layer(module, layer, 4, 4)
        starts.append([getattr(module, layer).weight.detach().clone() for layer in LAYERS])
    for layer, first, second in zip(LAYERS, *starts, strict=True):
        require(
            not torch.equal(first, second),
            f"SimpleAttention(4), made twice\nBoth times `{layer}` starts with the same weights, "
            "though the seed was set to 1 before the first and to 2 before the second. "
            "Is a seed set in your code?",
        )
    random_state = torch.get_rng_state()
    check_form(
        module(rng.normal(2, 3, 4, dtype=torch.float32)), torch.zeros(2, 3, 4), "attention(x)"
    )
    require(
        torch.equal(torch.get_rng_state(), random_state),
        "attention(x)\nYour code changed the global random state; nothing here needs chance.",
    )


@pytest.mark.points(0.25)
def test_attention_is_your_own(problem, rng):
    """attention is written without PyTorch's own attention functions and modules"""
    module, x = problem.SimpleAttention(4), rng.normal(2, 3, 4, dtype=torch.float32)
    check_form(module.train()(x), x, "attention(x)")
    check_form(module.eval()(x), x, "attention(x)")


def probe(problem):
    """Small fixed questions; known mistakes answer them differently, each in its own way."""
    x, other = waves(2, 3, 4), waves(2, 3, 4, start=7)

    def module(n_embd=4, bias=True, dtype=torch.float64, **changes):
        weights = {}
        for i, layer in enumerate(LAYERS):
            weights[f"{layer}.weight"] = waves(n_embd, n_embd, start=20 + i).to(dtype)
            if bias:
                weights[f"{layer}.bias"] = waves(n_embd, start=30 + i).to(dtype)
        weights.update(changes)
        return build(problem, weights).eval()

    def varies(mode):
        made = module().train(mode)
        outputs = [made(x.clone()) for _ in range(20)]
        return any(bool((o - outputs[0]).abs().max() > 1e-6) for o in outputs)

    varies_in_evaluation = attempt(varies, False)
    left_to_chance = varies_in_evaluation == attempt(lambda: True)

    def output(made, x):
        """The output; NaN where it is left to chance."""
        return torch.tensor(math.nan) if left_to_chance else made(x.clone())

    def returned():
        value = module()(x.clone())
        return isinstance(value, torch.Tensor) or value

    def sizes(*arguments):
        made = problem.SimpleAttention(*arguments)
        layers = [getattr(made, layer) for layer in LAYERS]
        return torch.tensor([p.numel() for layer in layers for p in layer.parameters()])

    def output_of_rows_far_apart():
        far = x.clone()
        far[..., 0] = torch.linspace(-2000, 2000, 6, dtype=x.dtype).reshape(2, 3)
        start = torch.eye(4, dtype=x.dtype)[0]
        inner = waves(4, 4, start=40) * (1 - start)
        changes = {"query.weight": inner * (1 - start)[:, None] + torch.outer(start, start)}
        changes["query.bias"] = waves(4, start=41) * (1 - start)
        changes["key.weight"] = inner.T.flip(0) * (1 - start) * (1 - start)[:, None]
        changes["key.bias"] = start
        changes["value.weight"] = inner
        return output(module(**changes), far)

    def output_beside_large_values():
        large = torch.full((4,), 1e8, dtype=torch.float64)
        return output(module(**{"value.bias": large}), x) - 1e8

    def output_after_another(first, then):
        made = module()
        made(first.clone())
        return output(made, then)

    def output_after_new_weights():
        made, query = module(), waves(4, 4, start=50)
        made(x.clone())
        set_weights(made, {"query.weight": query})
        return output(made, x)

    def changes_x():
        mine = x.clone()
        module()(mine)
        return not torch.equal(mine, x)

    def gradient(name):
        made, mine = module(), x.clone().requires_grad_()
        by = mine if name == "x" else parameters_of(made)[name]
        upstream = waves(2, 3, 4, start=60)
        return gradients(output(made, mine), {name: by}, upstream, "attention(x)")[name]

    def seed_makes_no_difference():
        starts = []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            starts.append(problem.SimpleAttention(4).query.weight.detach().clone())
        return torch.equal(*starts)

    def moves_random_state():
        made, state = module(), torch.get_rng_state()
        made(x.clone())
        return not torch.equal(state, torch.get_rng_state())

    return {
        "attention.numbers in its layers": attempt(sizes, 4),
        "attention.numbers in its layers by default": attempt(sizes),
        "attention.numbers in its layers without bias": attempt(sizes, 4, False),
        "attention.returns a tensor": attempt(returned),
        "attention.output": attempt(lambda: output(module(), x)),
        "attention.output without bias": attempt(lambda: output(module(bias=False), x)),
        "attention.output in float32": attempt(
            lambda: output(module(dtype=torch.float32), x.float())
        ),
        "attention.output of width 3": attempt(lambda: output(module(3), x[..., :3])),
        "attention.output of one sequence": attempt(lambda: output(module(), x[:1])),
        "attention.output of one position": attempt(lambda: output(module(), x[:, :1])),
        "attention.output of twelve positions": attempt(
            lambda: output(module(), waves(1, 12, 4, start=3))
        ),
        "attention.output of rows far apart": attempt(output_of_rows_far_apart),
        "attention.output of large x": attempt(lambda: output(module(), 50 * x)),
        "attention.output of one large position": attempt(lambda: output(module(), 50 * x[:1, :1])),
        "attention.output beside large values": attempt(output_beside_large_values),
        "attention.output after another x": attempt(output_after_another, other, x),
        "attention.output after a shorter x": attempt(output_after_another, other[:, :2], x),
        "attention.output after new weights": attempt(output_after_new_weights),
        "attention.x is changed": attempt(changes_x),
        "attention.varies in training": attempt(varies, True),
        "attention.varies in evaluation": varies_in_evaluation,
        "attention.gradient of x": attempt(gradient, "x"),
        "attention.gradient of query.weight": attempt(gradient, "query.weight"),
        "attention.gradient of key.weight": attempt(gradient, "key.weight"),
        "attention.gradient of value.weight": attempt(gradient, "value.weight"),
        "attention.seed makes no difference": attempt(seed_makes_no_difference),
        "attention.moves the random state": attempt(moves_random_state),
    }


def waves(*shape, start=0):
    """Numbers between -1 and 1 that look random and are the same everywhere."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(1.7 * steps * (1 + 0.01 * start) + start).reshape(shape)


# --- hidden tests ---


def reference(solution, weights):
    """The reference's SimpleAttention with these weights, in float64."""
    return build(solution, {name: weight.double() for name, weight in weights.items()})


@pytest.mark.points(2)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize(
    ("batch", "seq", "n_embd"),
    [(5, 4, 8), (1, 17, 4), (7, 3, 10), (3, 1, 7), (1, 1, 1), (4, 2, 32), (2, 9, 5), (1, 3, 80)],
)
def test_hidden_sizes(problem, solution, rng, batch, seq, n_embd, bias):
    """attention is right for other sizes, with and without bias, and so are its gradients"""
    weights, x = draw_weights(rng, n_embd, bias), rng.normal(batch, seq, n_embd)
    upstream = rng.normal(batch, seq, n_embd)
    call = f"attention(x) of SimpleAttention({n_embd}, bias={bias}) and x {tuple(x.shape)}"
    module, right = build(problem, weights), reference(solution, weights)
    for layer in LAYERS:
        check_layer(module, layer, n_embd, n_embd, bias=bias)
    expected, slopes = right(x), gradients_of(right, x, weights, upstream, call)
    check(module(x), expected, call, sizes={"n_embd": n_embd})
    check_gradients(gradients_of(module, x, weights, upstream, call), slopes, call)


@pytest.mark.points(1)
@pytest.mark.parametrize("far", ["from row to row", "within a row"])
def test_hidden_large_scores(problem, solution, rng, far):
    """attention and its gradients stay right when scores are thousands apart"""
    x, weights = draw_rows_far_apart(rng, 3, 5, 6)
    if far == "within a row":
        x, weights = rng.normal(3, 5, 6), draw_weights(rng, 6)
        weights["query.weight"] *= 1e4
    upstream = rng.normal(3, 5, 6)
    call = f"attention(x) where scores are thousands apart {far}"
    module, right = build(problem, weights), reference(solution, weights)
    expected, slopes = right(x), gradients_of(right, x, weights, upstream, call)
    check(module(x), expected, call)
    found = gradients_of(module, x, weights, upstream, call)
    for name, slope in slopes.items():
        # Scores of 10000 and more are rounded at 1e-12, and a factor as large goes into the slope.
        call_of_gradient = f"the gradient of {call} with respect to {name}"
        check(found[name], slope, call_of_gradient, rtol=1e-6, atol=1e-5)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("batch", "seq", "n_embd"), [(2, 9, 6), (3, 1, 4), (1, 6, 16)])
def test_hidden_dtype(problem, solution, rng, batch, seq, n_embd, dtype):
    """attention keeps dtype and precision at other sizes"""
    weights, x = draw_weights(rng, n_embd, dtype=dtype), rng.normal(batch, seq, n_embd, dtype=dtype)
    call = f"attention(x) in {str(dtype).removeprefix('torch.')} with x {tuple(x.shape)}"
    expected = reference(solution, weights)(x.double()).to(dtype)
    check(build(problem, weights).eval()(x), expected, call)


@pytest.mark.points(0.75)
def test_hidden_learning(problem, solution, rng):
    """attention follows its weights while they learn"""
    weights, x, upstream = draw_weights(rng, 5), rng.normal(3, 4, 5), rng.normal(3, 4, 5)
    module, right = build(problem, weights), reference(solution, weights)
    for step in range(3):
        call = f"attention(x) after {step} steps of gradient descent"
        expected = right(x)
        check(module(x), expected, call)
        for learner in (module, right):
            found = gradients_of(learner, x, weights, upstream, call)
            parameters = parameters_of(learner)
            moved = {n: parameters[n].detach() - 0.1 * g for n, g in found.items() if n != "x"}
            set_weights(learner, moved)


@pytest.mark.points(1)
def test_hidden_calls_are_apart(problem, solution, rng):
    """Calls and modules know nothing of each other, in any mode"""
    many = [draw_weights(rng, 4), draw_weights(rng, 4), draw_weights(rng, 3, bias=False)]
    modules = [build(problem, weights) for weights in many]
    rights = [reference(solution, weights) for weights in many]
    for batch, seq in [(2, 3), (2, 3), (3, 3), (2, 5), (1, 1), (2, 3)]:
        for module, right, weights in zip(modules, rights, many, strict=True):
            n_embd = len(weights["query.weight"])
            x = rng.normal(batch, seq, n_embd)
            call = f"attention(x) with x {tuple(x.shape)}, after calls of other modules"
            expected, random_state = right(x), torch.get_rng_state()
            check(module.train()(x.clone()), expected, call)
            unchanged = torch.equal(torch.get_rng_state(), random_state)
            require(unchanged, f"{call}\nYour code changed the global random state.")
            with torch.no_grad():
                check(
                    module.eval()(x.clone()), expected, f"{call}, in evaluation without gradients"
                )


@pytest.mark.points(0.5)
@pytest.mark.parametrize(("batch", "seq", "n_embd"), [(2, 3, 7), (1, 4, 2), (3, 1, 2)])
def test_hidden_x_and_weights_are_left_alone(problem, rng, batch, seq, n_embd):
    """attention changes neither x nor its layers' weights, at other sizes"""
    weights, x = draw_weights(rng, n_embd), rng.normal(batch, seq, n_embd)
    call = f"attention(x) with x {tuple(x.shape)}"
    check_left_alone(build(problem, weights), x, weights, call)
