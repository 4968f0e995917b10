"""Tests of problem 01. Run them with `uv run pytest` in this folder."""

import math
from functools import partial

import pytest
import torch

from grader.run import checks
from grader.run.calls import answers
from shared import robust
from shared import worked_example as example
from shared.oracles import attention
from shared.oracles import softmax as oracles

INF = math.inf
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.points(0.75)
def test_similarity_in_numbers(problem):
    """dot_product_similarity returns the scores of the worked examples"""
    q = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    k = torch.tensor([[3.0, 1.0], [-1.0, 4.0], [0.5, 0.0]])
    call = "dot_product_similarity(q=[[1, 2], [0, -1]], k=[[3, 1], [-1, 4], [0.5, 0]])"
    expected = oracles.similarity(q, k)
    checks.check(problem.dot_product_similarity(q=q, k=k), expected, call)

    call = "dot_product_similarity(Q, K)"
    actual = problem.dot_product_similarity(example.Q.clone(), example.K.clone())
    checks.check(actual, attention.SCORES, call, sizes={"d": 8})
    call = "dot_product_similarity(1000 * Q, K)"
    actual = problem.dot_product_similarity(1000 * example.Q, example.K.clone())
    checks.check(actual, 1000 * attention.SCORES, call, atol=1e-2)


def similarity_call(problem, rng, lead=(), n=4, m=5, d=6, dtype=torch.float32):
    """Return a `robust.Call` of dot_product_similarity with random arguments."""
    inputs = {name: rng.normal(*lead, size, d, dtype=dtype) for name, size in [("q", n), ("k", m)]}
    if dtype.itemsize == 2:  # use multiples of 1/2, as their products and sums need no rounding
        inputs = {name: (2 * each).round().clamp(-4, 4) / 2 for name, each in inputs.items()}
    return robust.Call(
        "dot_product_similarity(q, k)",
        problem.dot_product_similarity,
        inputs,
        oracles.similarity,
        slopes=partial(oracles.similarity_gradients, *inputs.values()),
        near={"rtol": 1e-13, "atol": 1e-13} if dtype == torch.float64 else {},
    )


@pytest.mark.points(1)
@robust.parts("float16", "bfloat16", *robust.COMMON, *robust.LEADING)
def test_similarity_in_use(problem, rng, part):
    """dot_product_similarity follows the rules for all problems"""
    make = partial(similarity_call, problem, rng)
    robust.check_part(part, rng, make, sizes="lead n m d")


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    ("numbers", "dim"),
    [
        ([0.3, -0.1, -0.2, 0.5, 0.3, 0.7], 0),
        ([2.1, -0.7, -1.4, 3.5, 2.1, 4.9], 0),
        ([4.0, 5.0], 0),
        ([1.0, 10.0], 0),
        ([0.5] * 300, 0),
        ([[0.0, 0.0], [1.0, 3.0]], -1),
        ([[0.0, 0.0], [1.0, 3.0]], 0),
    ],
    ids=[
        "six numbers",
        "seven times as large",
        "4 and 5",
        "1 and 10",
        "300 equal numbers",
        "rows of a matrix",
        "columns of a matrix",
    ],
)
def test_softmax_in_numbers(problem, numbers, dim):
    """softmax returns the weights of the examples in README.md and more.md, to four digits"""
    x = torch.tensor(numbers)
    shown = numbers if len(numbers) < 10 else f"{numbers[:1]} * {len(numbers)}"
    call = f"softmax(tensor({shown}), {dim})"
    checks.check(problem.softmax(x.clone(), dim), oracles.softmax(x, dim), call, atol=0.6e-4)


@pytest.mark.points(1)
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_softmax_along_every_dim(problem, rng, dim):
    """The weights of softmax are correct and sum to 1 along the dimension dim"""
    x = rng.normal(3, 4, 5)
    expected = oracles.softmax(x, dim)
    call = f"softmax(x, dim={dim}) with x of shape (3, 4, 5)"
    checks.check(problem.softmax(x=x, dim=dim), expected, call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    "shape", [(6,), (1,), (2, 5), (1, 4), (4, 1), (3, 3, 3), (2, 1, 3, 2), (2, 1, 2, 3, 2)], ids=str
)
def test_softmax_of_any_shape(problem, rng, shape):
    """softmax accepts x of any shape and keeps the shape; by default dim is the last dimension"""
    x = rng.normal(*shape)
    expected = oracles.softmax(x, -1)
    checks.check(problem.softmax(x.clone()), expected, f"softmax(x) with x of shape {shape}")
    dims = range(-len(shape), len(shape))
    results = answers(problem.softmax, [(x.clone(), dim) for dim in dims])
    for dim, actual in zip(dims, results, strict=True):
        checks.check(actual, oracles.softmax(x, dim), f"softmax(x, {dim}) with x of shape {shape}")


@pytest.mark.points(0.75)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    "slices",
    [
        [[1000.0, 1001.0]],
        [[1000.0, 1001.0, 999.0], [1003.0, 1000.5, 1002.0]],
        [[-1000.0, -1002.0, -1001.0], [-1003.5, -1001.0, -1002.0]],
        [[1000.0, 1001.0, 999.0], [-1000.0, -1002.0, -1001.0], [0.5, 1e30, 3e38]],
        [[-1500.0, 0.0, 1500.0], [-3e38, -1e30, -0.5], [2.0, -1.0, 1.0]],
    ],
    ids=["1000 and 1001", "near 1000", "near -1000", "slices far apart", "entries far apart"],
)
def test_softmax_of_large_numbers(problem, slices, dim):
    """softmax is correct for scores so large or so small that their exp is inf or 0"""
    rows = torch.tensor(slices)
    x = rows if dim == 1 else rows.T.contiguous()
    expected = oracles.softmax(x, dim)
    call = f"softmax(x, dim={dim}) with the slices {slices}"
    # Near 1000, float32 has four decimals.
    checks.check(problem.softmax(x, dim), expected, call, atol=1e-3)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_minus_infinity(problem, dim):
    """The weight of -inf is exactly 0; if all scores of a slice are -inf, its weights are NaN"""
    lowest = torch.finfo(torch.float32).min
    rows = torch.tensor(
        [[0.0, -INF, 1.5], [-INF, -INF, 2.0], [lowest, -INF, -INF], [-INF, -INF, -INF]]
    )
    x = rows if dim == 1 else rows.T.contiguous()
    expected = oracles.softmax(x, dim)
    call = f"softmax(x, dim={dim}) with the slices {rows.tolist()}"
    actual = problem.softmax(x, dim)
    checks.check(actual, expected, call)
    checks.check_that(actual, oracles.exactly_zero, call, expected == 0)


def softmax_call(problem, rng, dim, lead=(), n=3, m=4, dtype=torch.float32):
    """Return a `robust.Call` of softmax with random arguments."""
    x = 4 * rng.normal(*lead, n, m, dtype=dtype)
    if dtype.itemsize > 2:  # add a large number to each slice, which half precision would round
        x += 50 * rng.normal(*x.shape, dtype=dtype).narrow(dim, 0, 1)
    return robust.Call(
        f"softmax(x, {dim})",
        partial(problem.softmax, dim=dim),
        {"x": x},
        partial(oracles.softmax, dim=dim),
        slopes=partial(oracles.softmax_gradient, x, dim),
        near={"rtol": 1e-12, "atol": 1e-14} if dtype == torch.float64 else {},
    )


@pytest.mark.points(1)
@pytest.mark.parametrize("dim", [0, -1])
@robust.parts("float16", "bfloat16", *robust.COMMON)
def test_softmax_in_use(problem, rng, dim, part):
    """softmax follows the rules for all problems"""
    make = partial(softmax_call, problem, rng, dim)
    robust.check_part(part, rng, make, sizes="n m")


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_softmax_is_your_own(problem, rng):
    """softmax does not call the PyTorch functions that compute a softmax"""
    x = rng.normal(2, 3)
    expected = oracles.softmax(x, 1)
    checks.check(problem.softmax(x, 1), expected, "softmax(x, 1) with x of shape (2, 3)")


# --- hidden tests ---


@pytest.mark.points(0.75)
@pytest.mark.parametrize(
    "shape",
    [
        (6, 4),
        (7, 3, 9),
        (2, 3, 5, 4),
        (1, 8, 2),
        (2, 2, 2, 3, 2),
        (2, 1, 1, 3, 2, 1),
        (2, 1100),
        (70, 2),
        (70, 1, 2),
    ],
    ids=str,
)
def test_hidden_similarity(problem, solution, rng, shape):
    """dot_product_similarity is correct for other sizes"""
    *leading, n, d = shape
    q, k = (rng.normal(*leading, size, d) for size in (n, n + 2))
    sizes = f"with q of shape {tuple(q.shape)} and k of shape {tuple(k.shape)}"
    calls = {
        f"dot_product_similarity(q, k) {sizes}": {"k": k, "q": q},
        f"dot_product_similarity(q, k) {sizes}, both transposed": {
            "q": example.turned(q),
            "k": example.turned(k),
        },
        f"dot_product_similarity(q, q) with q of shape {tuple(q.shape)}": {"q": q, "k": q},
        f"dot_product_similarity(100 * q, k) {sizes}": {"q": 100 * q, "k": k},
    }
    expected = [solution.dot_product_similarity(**arguments) for arguments in calls.values()]
    results = answers(problem.dot_product_similarity, map(example.copies, calls.values()))
    for call, actual, right in zip(calls, results, expected, strict=True):
        # The sum of a thousand products has a rounding error for each of them.
        atol = 0.1 if "(100 * q" in call else 1e-3
        checks.check(actual, right, call, sizes={"d": d}, atol=atol)


@pytest.mark.points(0.25)
def test_hidden_similarity_of_other_vectors(problem, solution, rng):
    """dot_product_similarity is correct for many, large and transposed vectors"""
    # Use float64: large products cancel, which leaves few correct digits in float32.
    normal = partial(rng.normal, dtype=torch.float64)
    pairs = {
        "of 600 queries": (normal(600, 1), normal(1, 1)),
        "of 600 keys": (normal(1, 1), normal(600, 1)),
        "of 300 matrices": (normal(300, 1, 2), normal(300, 1, 2)),
        "in another memory layout": (
            example.turned(normal(2, 3, 4, 5)),
            example.turned(normal(2, 3, 2, 5)),
        ),
        "with long queries and short keys": (1e5 * normal(4, 3), 1e-5 * normal(2, 3)),
        "with short queries and long keys": (1e-5 * normal(4, 3), 1e5 * normal(2, 3)),
    }
    cases = []
    for what, (q, k) in pairs.items():
        arguments = {"q": q.requires_grad_(), "k": k.requires_grad_()}
        cases.append((f"dot_product_similarity(q, k) {what}", arguments))
    for name in ("q", "k"):
        arguments = {"q": normal(3, 4), "k": normal(2, 4)}
        arguments[name].requires_grad_()
        call = f"dot_product_similarity(q, k), where only {name} requires a gradient"
        cases.append((call, arguments))
    both = solution.dot_product_similarity, problem.dot_product_similarity
    example.check_like(*both, rng, cases, atol=1e-8)
    q, k = (1e6 * normal(n, 3).requires_grad_() for n in (4, 5))
    case = ("dot_product_similarity(q, k) with numbers near a million", {"q": q, "k": k})
    example.check_like(*both, rng, [case], atol=10.0)  # products are near 1e12


@pytest.mark.points(0.25)
def test_hidden_softmax_of_other_tensors(problem, solution, rng):
    """softmax is correct for many slices, -inf, transposed x and half precision"""
    hidden = rng.normal(3, 4)
    hidden[1, 2] = hidden[2, 0] = -INF
    # Near a million, float32 can represent multiples of 1/4.
    quarters, far = rng.normal(3, 4, dtype=torch.float64), rng.normal(3, 1, dtype=torch.float64)
    xs = {
        "300 matrices": rng.normal(300, 1, 2),
        "entries of -inf": hidden,
        "another memory layout": example.turned(rng.normal(2, 3, 2, 4)),
        "rows a million apart": (4 * quarters).round() / 4 + (1e6 * far).round(),
        "float16": rng.normal(3, 4, dtype=torch.float16),
        "bfloat16": rng.normal(3, 4, dtype=torch.bfloat16),
    }
    cases = [
        (f"softmax(x, {dim}) with {what}", {"x": x.requires_grad_(), "dim": dim})
        for what, x in xs.items()
        for dim in ((0, 2) if x.dim() == 3 else (-1, -2))
    ]
    example.check_like(solution.softmax, problem.softmax, rng, cases)


@pytest.mark.points(1.25)
@pytest.mark.parametrize(
    "shape", [(9,), (2, 7), (4, 1, 3), (3, 2, 1, 5), (2, 1, 3, 2, 4), (70, 1, 2)], ids=str
)
def test_hidden_softmax(problem, solution, rng, shape):
    """softmax is correct for other shapes and every dim"""
    other = rng.normal(*shape[::-1]).permute(*reversed(range(len(shape))))
    many = rng.normal(2, 1100) / 4
    calls = [(other, 0), (other, -1), (many, 1), (many.mT, 0)]
    for dim in range(-len(shape), len(shape)):
        offset = 10 * rng.normal(*[1] * len(shape))
        calls.append((3 * rng.normal(*shape) + offset, dim))
    # Pass copies with the same memory layout, as wrong code may change x.
    results = answers(problem.softmax, [(x.clone(), dim) for x, dim in calls])
    for (x, dim), actual in zip(calls, results, strict=True):
        call = f"softmax(x, {dim}) with x of shape {tuple(x.shape)}"
        checks.check(actual, solution.softmax(x, dim), call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("shape", [(9,), (2, 7), (3, 2, 5), (2, 1, 3, 2, 4), (70, 2)], ids=str)
def test_hidden_gradients(problem, solution, rng, shape):
    """The gradients of both functions are correct for other sizes and every dim"""
    dims = range(-len(shape), len(shape))
    xs = [(3 * rng.normal(*shape) + 10).requires_grad_() for _ in dims]
    cases = [
        (f"softmax(x, {dim}) with x of shape {shape}", {"x": x, "dim": dim})
        for dim, x in zip(dims, xs, strict=True)
    ]
    example.check_like(solution.softmax, problem.softmax, rng, cases, atol=1e-4)
    *leading, n = shape
    q, k = (rng.normal(*leading, size, 4).requires_grad_() for size in (n, n + 2))
    shapes = f"q of shape {tuple(q.shape)} and k of shape {tuple(k.shape)}"
    call = f"dot_product_similarity(q, k) with {shapes}"
    both = solution.dot_product_similarity, problem.dot_product_similarity
    example.check_like(*both, rng, [(call, {"q": q, "k": k})], atol=1e-3)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hidden_slices_far_apart(problem, solution, rng, dtype):
    """In every dtype, softmax is correct for slices and entries that are far apart"""
    largest = torch.finfo(dtype).max
    near = torch.tensor([0.0, 2.0, -3.0, -INF], dtype=torch.float64)
    far = torch.tensor([0.0, -largest / 8, -largest / 4, -INF], dtype=torch.float64)
    rows = [near, near * 30 + 150, near * 30 - 200, far, far + largest, far - largest / 2]
    if dtype in (torch.float32, torch.float64):
        # Half precision would round the scores near 150.
        rows += [near + 150, near - 200]
    rows.append(torch.tensor([largest, -largest, 0.0, -INF], dtype=torch.float64))
    x = torch.stack(rows).to(dtype)
    calls = [
        ("softmax(x, 1) of rows far apart", (x, 1)),
        ("softmax(x, 0) of columns far apart", (x.T.contiguous(), 0)),
        # Test each row alone, too, as all entries of some rows are far below 0.
        *((f"softmax(tensor({row.tolist()}))", (row,)) for row in x.unbind()),
    ]
    results = answers(problem.softmax, [(x.clone(), *dim) for _, (x, *dim) in calls])
    for (call, arguments), actual in zip(calls, results, strict=True):
        checks.check(actual, solution.softmax(*arguments), call)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hidden_minus_infinity(problem, solution, rng, dtype):
    """In every dtype, the weight of -inf is 0, and a slice with only -inf gives NaN"""
    calls = []
    for dim in range(-3, 3):
        x = rng.normal(3, 4, 5, dtype=dtype)
        x[torch.rand(x.shape, generator=rng.generator) < 0.3] = -INF
        slices = x.movedim(dim, -1)  # a view: assignments change x
        slices[1, 1] = -INF
        slices[0, 2] = -INF
        slices[0, 2, 1] = torch.finfo(dtype).min
        calls.append((x, dim))
    results = answers(problem.softmax, [(x.clone(), dim) for x, dim in calls])
    for (x, dim), actual in zip(calls, results, strict=True):
        call, expected = f"softmax(x, {dim}) where x has entries of -inf", solution.softmax(x, dim)
        checks.check(actual, expected, call)
        checks.check_that(actual, oracles.exactly_zero, call, (x == -INF) & (expected == 0))


@pytest.mark.points(0.25)
def test_hidden_precision(problem, solution, rng):
    """Both functions and their gradients keep all digits of float64, for every dim"""
    normal = partial(rng.normal, dtype=torch.float64)
    cases = [
        (f"softmax(x, {dim})", {"x": (4 * normal(3, 4, 5)).requires_grad_(), "dim": dim})
        for dim in range(-3, 3)
    ]
    example.check_like(solution.softmax, problem.softmax, rng, cases, rtol=1e-12, atol=1e-14)
    inputs = {"q": normal(2, 3, 5).requires_grad_(), "k": normal(2, 4, 5).requires_grad_()}
    case = ("dot_product_similarity(q, k)", inputs)
    both = solution.dot_product_similarity, problem.dot_product_similarity
    example.check_like(*both, rng, [case], rtol=1e-12, atol=1e-13)
