"""Tests of problem 02. Run them with `uv run pytest` in this folder."""

from functools import partial

import pytest
import torch

from grader.run import checks
from shared import robust
from shared import worked_example as example
from shared.oracles import basic_attention as oracles

# Small weights, as the scores are not scaled in this problem
small_weights = partial(example.random_weights, scaled=False)


def make_attention(problem, weights):
    """Return the student's SimpleAttention with these weights and their dtype."""
    module = problem.SimpleAttention(len(weights["query.weight"]), bias="query.bias" in weights)
    return example.load_weights(module, weights)


def rows_far_apart(rng, batch, seq, n_embd, dtype=torch.float32):
    """Return x and weights. In each row, one number from -2000 to 2000 is added to all scores."""
    x = rng.normal(batch, seq, n_embd, dtype=dtype)
    weights = small_weights(rng, n_embd, dtype=dtype)
    x[..., 0] = torch.linspace(-2000, 2000, batch * seq, dtype=x.dtype).reshape(batch, seq)
    for name in example.LAYERS:
        weights[f"{name}.weight"][:, 0] = 0
    # Entry 0 of each query is the number that is added to its row; entry 0 of each key is 1.
    weights["query.weight"][0] = 0
    weights["query.weight"][0, 0] = 1
    weights["query.bias"][0] = 0
    weights["key.weight"][0] = 0
    weights["key.bias"][0] = 1
    return x, weights


def check_attention(module, x, weights, call, **near):
    """Compare the output of a module for x with the output computed by hand."""
    checks.check(module(x.clone()), oracles.output(x, weights), call, **near)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("n_embd", [6, 9])
def test_three_layers(problem, n_embd):
    """The only layers are query, key and value; their initial weights are random"""
    example.check_layers(problem.SimpleAttention(n_embd), n_embd)
    make = partial(problem.SimpleAttention, n_embd)
    example.check_random_start(make, example.LAYERS, f"SimpleAttention({n_embd})")


@pytest.mark.points(0.25)
def test_defaults(problem):
    """SimpleAttention() has the width 768 and biases"""
    example.check_layers(problem.SimpleAttention(), 768)


@pytest.mark.points(0.75)
def test_attention_weights(problem, rng):
    """The weights of each query are the softmax of its scores"""
    weights, x = small_weights(rng, 7), torch.eye(5, 7).repeat(2, 1, 1)
    weights |= {"value.weight": torch.eye(7), "value.bias": torch.zeros(7)}
    call = (
        "attention(x) of SimpleAttention(7) with x of shape (2, 5, 7), where the values are the "
        "identity, so the output is the weights"
    )
    sizes = {"n_embd": 7, "T": 5}
    check_attention(make_attention(problem, weights), x, weights, call, sizes=sizes)


@pytest.mark.points(0.5)
def test_attention_in_numbers(problem):
    """attention returns the output of the README's example: three positions, two entries each"""
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    weights = {
        "query.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        "key.weight": torch.tensor([[1.0, 1.0], [0.0, 1.0]]),
        "value.weight": torch.tensor([[2.0, 0.0], [1.0, -1.0]]),
        **{f"{name}.bias": torch.zeros(2) for name in example.LAYERS},
    }
    call = "attention(x) of the README's example"
    checks.check(make_attention(problem, weights)(x), oracles.README_OUTPUT, call, atol=6e-5)


@pytest.mark.points(0.75)
def test_worked_example(problem):
    """attention returns the output of the larger example: four positions, eight entries each"""
    # Each row of x consists of a query, key and value. Each layer returns one of them.
    x = torch.cat([example.Q, example.K, example.V], dim=-1)[None]
    weights = {f"{name}.bias": torch.zeros(24) for name in example.LAYERS}
    for part, name in enumerate(example.LAYERS):
        weights[f"{name}.weight"] = torch.zeros(24, 24)
        for i in range(8):
            weights[f"{name}.weight"][i, 8 * part + i] = 1
    call = "attention(x) with x of shape (1, 4, 24), where the layers copy Q, K and V out of x"
    actual = make_attention(problem, weights)(x)
    checks.check(actual, oracles.worked_example(), call, sizes={"d_k": 8})


@pytest.mark.points(0.5)
def test_bias_can_be_left_out(problem, rng):
    """With bias=False no layer has a bias, and the output is correct"""
    module = problem.SimpleAttention(4, bias=False)
    example.check_layers(module, 4, bias=False)
    weights, x = small_weights(rng, 4, bias=False), rng.normal(2, 3, 4)
    x[0, 1], x[1, 2] = x[0, 0], 0  # no special cases
    call = "attention(x) of SimpleAttention(4, bias=False) with x of shape (2, 3, 4), where "
    call += "x[0, 1] equals x[0, 0], and x[1, 2] is 0"
    check_attention(make_attention(problem, weights), x, weights, call, sizes={"n_embd": 4})


@pytest.mark.points(0.25)
def test_names_and_positions(problem, rng):
    """n_embd, bias and x can be passed by name, or by position in this order"""
    weights, x = small_weights(rng, 3, bias=False), rng.normal(2, 4, 3)
    expected = oracles.output(x, weights)
    for module, call in [
        (problem.SimpleAttention(3, False), "SimpleAttention(3, False)"),
        (problem.SimpleAttention(bias=False, n_embd=3), "SimpleAttention(bias=False, n_embd=3)"),
    ]:
        checks.set_weights(module, weights)
        checks.check(module(x=x.clone()), expected, f"attention(x=x) with attention = {call}")


@pytest.mark.points(1.25)
@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 5, 2), (6, 2, 7), (1, 18, 3)], ids=str)
def test_attention_of_any_size(problem, rng, shape):
    """The output is softmax(q kᵀ) v, for each sequence of a batch separately"""
    weights, x = small_weights(rng, shape[-1]), rng.normal(*shape)
    module, sizes = make_attention(problem, weights), {"n_embd": shape[-1]}
    call = f"attention(x) of SimpleAttention({shape[-1]}) with x of shape {shape}"
    check_attention(module, x, weights, call, sizes=sizes)
    check_attention(module.eval(), x, weights, f"{call}, after attention.eval()", sizes=sizes)


@pytest.mark.points(0.25)
def test_long_sequences_and_large_values(problem, rng):
    """attention is correct for 150 positions with similar weights, and for values near 1000"""
    weights, x = small_weights(rng, 2), rng.normal(1, 150, 2) / 4
    weights["value.bias"] += torch.tensor([1000.0, -1000.0])
    call = "attention(x) of 150 positions with values near 1000 and -1000"
    with torch.no_grad():
        check_attention(make_attention(problem, weights), x, weights, call, rtol=1e-5)


@pytest.mark.points(0.5)
def test_large_scores_apart_by_row(problem, rng):
    """attention is correct when some queries have scores near 2000 and others near -2000"""
    x, weights = rows_far_apart(rng, 2, 4, 5)
    call = "attention(x) with x of shape (2, 4, 5), where rows of scores are near -2000 to 2000"
    # float32 rounds a score near 2000 to four decimals.
    check_attention(make_attention(problem, weights), x, weights, call, atol=1e-2)


@pytest.mark.points(0.5)
def test_large_scores_within_a_row(problem, rng):
    """attention is correct when the scores of a query are thousands apart"""
    weights, x = small_weights(rng, 5), rng.normal(2, 4, 5)
    weights["query.weight"] *= 1e4
    call = "attention(x) with x of shape (2, 4, 5), where scores of a row are thousands apart"
    check_attention(make_attention(problem, weights), x, weights, call, atol=5e-2)


def attention_call(problem, rng, batch=2, seq=3, n_embd=4, dtype=torch.float32):
    """Return a `robust.Call` of a SimpleAttention with random arguments."""
    weights = small_weights(rng, n_embd, dtype=dtype)
    x = rng.normal(batch, seq, n_embd, dtype=dtype)
    return robust.Call(
        f"attention(x) of SimpleAttention({n_embd})",
        make_attention(problem, weights),
        {"x": x},
        lambda x: oracles.output(x, weights),
        weights=weights,
        slopes=partial(oracles.slopes, x, weights),
    )


@pytest.mark.points(2.5)
@robust.parts(*robust.COMMON)
def test_attention_in_use(problem, rng, part):
    """attention follows the rules for all problems"""
    make = partial(attention_call, problem, rng)
    robust.check_part(part, rng, make, sizes="batch seq n_embd", other={"seq": 5})


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_attention_is_your_own(problem, rng):
    """attention does not call PyTorch's attention functions and modules"""
    module, x = problem.SimpleAttention(4), rng.normal(2, 3, 4)
    checks.check_form(module.train()(x), x, "attention(x)")
    checks.check_form(module.eval()(x), x, "attention(x)")


# --- hidden tests ---

from grader.run.calls import answers  # noqa: E402
from shared import three_layers  # noqa: E402
from shared.oracles import modules  # noqa: E402


def both(solution, problem, weights):
    """Return the reference's and the student's SimpleAttention, both with these weights."""
    n_embd, bias = len(weights["query.weight"]), "query.bias" in weights
    right = modules.build(weights, solution.SimpleAttention, n_embd, bias=bias)
    return right, make_attention(problem, weights)


@pytest.mark.points(2.5)
@pytest.mark.parametrize(
    ("batch", "seq", "n_embd", "bias"),
    [
        (5, 4, 8, True),
        (1, 17, 4, False),
        (7, 3, 10, True),
        (3, 1, 7, False),
        (1, 1, 1, True),
        (4, 2, 32, False),
        (2, 9, 5, True),
        (1, 3, 80, False),
        (300, 2, 3, True),
        (1, 2, 300, False),
    ],
)
def test_hidden_sizes(problem, solution, rng, batch, seq, n_embd, bias):
    """attention is correct for other sizes, with and without bias"""
    weights, x = small_weights(rng, n_embd, bias=bias), rng.normal(batch, seq, n_embd)
    call = f"attention(x) of SimpleAttention({n_embd}, bias={bias}) with x of shape "
    call += f"{tuple(x.shape)}"
    right, module = both(solution, problem, weights)
    expected = right(x)
    actual, of_turned = answers(module, [(x.clone(),), (example.turned(x),)])
    checks.check(actual, expected, call, sizes={"n_embd": n_embd})
    checks.check(of_turned, expected, f"{call}, transposed")


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "shape", [(5, 4, 8), (1, 17, 4), (3, 1, 7), (2, 9, 5), (1, 3, 80), (70, 2, 3)], ids=str
)
def test_hidden_gradients(problem, solution, rng, shape):
    """The gradients of attention are correct for other sizes"""
    weights, x = small_weights(rng, shape[-1]), rng.normal(*shape).requires_grad_()
    upstream = 100 * rng.normal(*shape)  # large, to detect code that clips gradients
    call = f"attention(x) of SimpleAttention({shape[-1]}) with x of shape {shape}"
    right, module = both(solution, problem, weights)
    learns = {"x": x, **example.trained_parameters(module, weights)}
    gradients = checks.gradients(module(x.clone()), learns, upstream, call)
    checks.check_gradients(gradients, modules.slopes(right, x, upstream), call, atol=0.1)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("far", ["from row to row", "within a row"])
def test_hidden_large_scores(problem, solution, rng, far):
    """attention and its gradients are correct when scores are thousands apart"""
    double = torch.float64  # float32 is too coarse, as large terms of the gradients cancel
    x, weights = rows_far_apart(rng, 3, 5, 6, double)
    if far == "within a row":
        x, weights = rng.normal(3, 5, 6, dtype=double), small_weights(rng, 6, dtype=double)
        weights["query.weight"] *= 1e4
    call = f"attention(x) with x of shape (3, 5, 6), where scores are thousands apart {far}"
    example.check_like(*both(solution, problem, weights), rng, [(call, {"x": x.requires_grad_()})])


@pytest.mark.points(0.25)
def test_hidden_numbers_of_any_size(problem, solution, rng):
    """attention and its gradients are correct for tokens, keys, values and scores of any size"""
    double = torch.float64  # float32 has few decimals near a million
    tokens, usual = rng.normal(2, 4, 6, dtype=double), small_weights(rng, 6, dtype=double)
    for what, x, weights in example.large_numbers(tokens, usual):
        case = (f"attention(x) with x of shape (2, 4, 6), {what}", {"x": x.requires_grad_()})
        right, module = both(solution, problem, weights)
        example.check_like(right, module, rng, [case], rtol=1e-6, atol=1e-4)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(2, 9, 6), (3, 1, 4), (1, 6, 16)], ids=str)
def test_hidden_dtype(problem, solution, rng, shape, dtype):
    """attention and its gradients keep the dtype and its precision for other sizes"""
    x, weights = rng.normal(*shape, dtype=dtype), small_weights(rng, shape[-1], dtype=dtype)
    case = (f"attention(x) in {dtype} with x of shape {shape}", {"x": x.requires_grad_()})
    near = {"all_digits": True, **({"atol": 1e-3} if dtype == torch.float32 else {})}
    example.check_like(*both(solution, problem, weights), rng, [case], **near)


@pytest.mark.points(0.25)
def test_hidden_long_sequence(problem, solution, rng):
    """attention is correct for a sequence of 1100 tokens"""
    weights, x = small_weights(rng, 2), rng.normal(1, 1100, 2)
    right, module = both(solution, problem, weights)
    call = "attention(x) with x of shape (1, 1100, 2)"
    three_layers.check_long_sequence(right, module, x, call)


@pytest.mark.points(1)
def test_hidden_calls_are_apart(problem, solution, rng):
    """Calls and modules do not affect each other, in training and in evaluation"""
    many = [small_weights(rng, 4), small_weights(rng, 4), small_weights(rng, 3, bias=False)]
    pairs = [both(solution, problem, weights) for weights in many]
    for batch, seq in [(2, 3), (2, 3), (3, 5), (2, 3)]:
        for (right, module), weights in zip(pairs, many, strict=True):
            n_embd = len(weights["query.weight"])
            x = rng.normal(batch, seq, n_embd)
            call = f"attention(x) with x of shape {tuple(x.shape)}, after calls of other modules"
            expected = right(x)
            with example.state_unchanged(call):
                checks.check(module.train()(x.clone()), expected, call)
            call += ", in evaluation without gradients"
            with torch.no_grad():
                checks.check(module.eval()(x.clone()), expected, call)
