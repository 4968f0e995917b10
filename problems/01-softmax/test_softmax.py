"""Tests of problem 01. Run them with `uv run pytest` in this folder."""

import math
from functools import partial

import pytest
import torch

from grader.run.calls import answers
from grader.run.checks import check, check_form, check_gradients, check_that, gradients
from shared.oracles import attention
from shared.oracles import softmax as oracles
from shared.worked_example import (
    K,
    Q,
    check_left_alone,
    check_like,
    copied,
    left_alone,
    nothing_left_behind,
    turned,
)

INF = math.inf
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def check_similarity_gradients(problem, q, k, upstream, call, **near):
    """Check the gradients of dot_product_similarity."""
    q, k = q.requires_grad_(), k.requires_grad_()
    # Copies, so that nothing here depends on whether arguments are left alone.
    scores = problem.dot_product_similarity(q.clone(), k.clone())
    found = gradients(scores, {"q": q, "k": k}, upstream, call)
    check_gradients(found, oracles.similarity_gradients(q, k, upstream), call, **near)


def check_softmax_gradient(problem, x, dim, upstream, call, **near):
    """Check the gradient of softmax."""
    x = x.requires_grad_()
    found = gradients(problem.softmax(x.clone(), dim), {"x": x}, upstream, call)
    check_gradients(found, oracles.softmax_gradient(x, dim, upstream), call, **near)


@pytest.mark.points(0.5)
def test_similarity_in_numbers(problem):
    """dot_product_similarity gives the scores of the worked examples"""
    q = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    k = torch.tensor([[3.0, 1.0], [-1.0, 4.0], [0.5, 0.0]])
    call = "dot_product_similarity(q=[[1, 2], [0, -1]], k=[[3, 1], [-1, 4], [0.5, 0]])"
    expected = oracles.similarity(q, k)
    check(problem.dot_product_similarity(q=q, k=k), expected, call)

    call = "dot_product_similarity(Q, K)"
    actual = problem.dot_product_similarity(Q.clone(), K.clone())
    check(actual, attention.SCORES, call, sizes={"d": 8})
    actual = problem.dot_product_similarity(1000 * Q, K.clone())
    check(actual, 1000 * attention.SCORES, "dot_product_similarity(1000 * Q, K)", atol=1e-2)


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    ("leading", "n", "m", "d"),
    [
        ((), 4, 5, 6),
        ((3,), 5, 2, 4),
        ((2, 3), 3, 5, 4),
        ((2, 1, 3), 2, 4, 3),
        ((3,), 3, 3, 3),
        ((1,), 4, 2, 3),
        ((2,), 1, 3, 4),
        ((2,), 3, 1, 4),
        ((1, 1), 1, 1, 2),
    ],
    ids=["2-D", "3-D", "4-D", "5-D", "square", "batch of 1", "1 query", "1 key", "1 of each"],
)
def test_similarity_with_leading_dimensions(problem, rng, leading, n, m, d):
    """dot_product_similarity works on each matrix of a batch by itself, for all sizes"""
    q, k = rng.normal(*leading, n, d), rng.normal(*leading, m, d)
    expected = oracles.similarity(q, k)
    call = f"dot_product_similarity(q, k) with q {tuple(q.shape)} and k {tuple(k.shape)}"
    check(problem.dot_product_similarity(q, k), expected, call, sizes={"d": d})


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
    """Softmax gives the weights of the worked example, to four digits"""
    x = torch.tensor(numbers)
    shown = numbers if len(numbers) < 10 else f"{numbers[:1]} * {len(numbers)}"
    call = f"softmax(tensor({shown}), {dim})"
    check(problem.softmax(x.clone(), dim), oracles.softmax(x, dim), call, atol=0.6e-4)


@pytest.mark.points(1)
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_softmax_along_every_dim(problem, rng, dim):
    """Softmax makes weights that sum to 1 along the dimension dim"""
    x = rng.normal(3, 4, 5)
    expected = oracles.softmax(x, dim)
    call = f"softmax(x, dim={dim}) with x of shape (3, 4, 5)"
    check(problem.softmax(x=x, dim=dim), expected, call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    "shape", [(6,), (1,), (2, 5), (1, 4), (4, 1), (3, 3, 3), (2, 1, 3, 2), (2, 1, 2, 3, 2)], ids=str
)
def test_softmax_of_any_shape(problem, rng, shape):
    """Softmax takes any number of dimensions and keeps the shape; by default dim is the last"""
    x = rng.normal(*shape)
    expected = oracles.softmax(x, -1)
    check(problem.softmax(x.clone()), expected, f"softmax(x) with x of shape {shape}")
    dims = range(-len(shape), len(shape))
    found = answers(problem.softmax, [(x.clone(), dim) for dim in dims])
    for dim, actual in zip(dims, found, strict=True):
        check(actual, oracles.softmax(x, dim), f"softmax(x, {dim}) with x of shape {shape}")


@pytest.mark.points(0.25)
def test_transposed_inputs(problem, rng):
    """Both functions take transposed tensors, with their numbers in another order"""
    q, k = rng.normal(2, 4, 3), rng.normal(2, 4, 5)
    call = "dot_product_similarity(a.mT, b.mT) with a (2, 4, 3) and b (2, 4, 5)"
    expected = oracles.similarity(q.mT, k.mT)
    check(problem.dot_product_similarity(q.mT, k.mT), expected, call)
    calls = [(rng.normal(4, 2, 3).transpose(0, 2), dim) for dim in range(-3, 3)]
    expected = [oracles.softmax(x, dim) for x, dim in calls]
    for dim, actual in enumerate(answers(problem.softmax, calls), -3):
        call = f"softmax(a.transpose(0, 2), {dim}) with a of shape (4, 2, 3)"
        check(actual, expected[dim + 3], call)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    "slices",
    [
        [[1000.0, 1001.0, 999.0], [1003.0, 1000.5, 1002.0]],
        [[-1000.0, -1002.0, -1001.0], [-1003.5, -1001.0, -1002.0]],
        [[1000.0, 1001.0, 999.0], [-1000.0, -1002.0, -1001.0], [0.5, 1e30, 3e38]],
        [[-1500.0, 0.0, 1500.0], [-3e38, -1e30, -0.5], [2.0, -1.0, 1.0]],
    ],
    ids=["near 1000", "near -1000", "slices far apart", "entries far apart"],
)
def test_softmax_of_large_numbers(problem, slices, dim):
    """Softmax stays right for numbers so large or so small that exp alone gives inf or 0"""
    rows = torch.tensor(slices)
    x = rows if dim == 1 else rows.T.contiguous()
    expected = oracles.softmax(x, dim)
    call = f"softmax(x, dim={dim}) with the slices {slices}"
    check(problem.softmax(x, dim), expected, call, atol=1e-3)  # near 1000 float32 has four digits


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_minus_infinity(problem, dim):
    """Softmax gives an entry of -inf exactly 0, and NaN where a whole slice is -inf"""
    lowest = torch.finfo(torch.float32).min
    rows = torch.tensor(
        [[0.0, -INF, 1.5], [-INF, -INF, 2.0], [lowest, -INF, -INF], [-INF, -INF, -INF]]
    )
    x = rows if dim == 1 else rows.T.contiguous()
    expected = oracles.softmax(x, dim)
    call = f"softmax(x, dim={dim}) with the slices {rows.tolist()}"
    actual = problem.softmax(x, dim)
    check(actual, expected, call)
    check_that(actual, oracles.exactly_zero, call, expected == 0)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtype_is_kept(problem, rng, dtype):
    """Both functions return the dtype that came in, and half precision doesn't overflow"""
    name = str(dtype).removeprefix("torch.")
    # Multiples of 1/2: every dtype holds their products and sums without rounding.
    q, k = ((rng.normal(n, 4) * 2).round().clamp(-4, 4).to(dtype) / 2 for n in (3, 2))
    scores = oracles.similarity(q, k)
    call = f"dot_product_similarity(q, k) in {name}"
    check(problem.dot_product_similarity(q, k), scores, call, all_digits=True)

    x = rng.normal(3, 5, dtype=dtype) * 2
    x[1, 3] = torch.finfo(dtype).max
    x[2] = torch.tensor([-300, -400, -300, -200, -300])
    expected = oracles.softmax(x, -1)
    check(problem.softmax(x), expected, f"softmax(x) in {name}", all_digits=True)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_arguments_are_left_alone(problem, rng, dtype):
    """Neither function changes its arguments"""
    q, k = rng.normal(3, 4, dtype=dtype), rng.normal(2, 4, dtype=dtype)
    call = "dot_product_similarity(q, k)"
    with left_alone(call, q=q, k=k):
        check_form(problem.dot_product_similarity(q, k), torch.empty(3, 2, dtype=dtype), call)
    calls = []
    for dim in range(-2, 2):
        x = rng.normal(3, 4, dtype=dtype)
        x[1, 2] = -INF
        calls.append((f"softmax(x, {dim})", {"x": x, "dim": dim}))
    check_left_alone(problem.softmax, calls, [arguments["x"] for _, arguments in calls])


@pytest.mark.points(0.25)
def test_float64_keeps_its_precision(problem, rng):
    """Both functions and their gradients are right to more than twelve digits in float64"""
    q, k, x, g = (
        rng.normal(*size, dtype=torch.float64) for size in [(3, 5), (4, 5), (4, 6), (4, 6)]
    )
    scores = oracles.similarity(q, k)
    call, near = "dot_product_similarity(q, k) in float64", {"rtol": 1e-13, "atol": 1e-13}
    check(problem.dot_product_similarity(q.clone(), k.clone()), scores, call, **near)
    check_similarity_gradients(problem, q, k, g[:3, :4], call, **near)
    x *= 4
    x[0, 0] -= 25
    call, near = "softmax(x, 1) in float64", {"rtol": 1e-13, "atol": 1e-15}
    expected = oracles.softmax(x, 1)
    check(problem.softmax(x, 1), expected, call, **near)
    check_softmax_gradient(problem, x, 1, g, call, rtol=1e-12, atol=1e-14)


@pytest.mark.points(0.5)
def test_gradients_flow(problem, rng):
    """Gradients flow through both functions, and large numbers don't spoil them"""
    q, k, g = rng.normal(3, 4), rng.normal(2, 4), rng.normal(3, 2)
    check_similarity_gradients(problem, q, k, g, "dot_product_similarity(q, k)")
    for what, shift in [("", 0.0), (" with rows near 0, 200 and -200", 200.0)]:
        for dim in (0, 1):
            x = rng.normal(3, 4) + torch.tensor([[0.0], [shift], [-shift]])
            call = f"softmax(x, {dim}){what}"
            check_softmax_gradient(problem, x, dim, rng.normal(3, 4), call, atol=1e-4)


@pytest.mark.points(0.25)
def test_nothing_is_kept_between_calls(problem, rng):
    """A second call gives the answer for its own numbers, and nothing here is random"""
    kept = []
    with nothing_left_behind("dot_product_similarity(q, k) and softmax(x)"):
        for number, shift in [("first", 0.0), ("second", -100.0), ("third", 200.0)]:
            q, k, x = rng.normal(3, 4), rng.normal(2, 4), rng.normal(3, 4) + shift
            expected = oracles.softmax(x, -1)
            actual = problem.softmax(x)
            call = f"the {number} softmax(x), with scores near {shift:g} in float32"
            check(actual, expected, call)
            kept.append((actual, expected, f"{call}, looked at after other calls"))
            scores = oracles.similarity(q, k)
            actual = problem.dot_product_similarity(q, k)
            check(actual, scores, f"the {number} dot_product_similarity(q, k)")
        other = rng.normal(3, 4)
        expected = oracles.softmax(other, -1)
        x.copy_(other)
        check(problem.softmax(x), expected, "softmax(x), called again after x was changed")
        for actual, expected, call in kept:
            check(actual, expected, call)


@pytest.mark.points(0.25)
@pytest.mark.inspection_only
def test_softmax_is_your_own(problem, rng):
    """Softmax is written without the functions of PyTorch that contain it"""
    x = rng.normal(2, 3)
    expected = oracles.softmax(x, 1)
    check(problem.softmax(x, 1), expected, "softmax(x, 1)")


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
    """dot_product_similarity is right for other sizes"""
    *leading, n, d = shape
    q, k = (rng.normal(*leading, size, d) for size in (n, n + 2))
    sizes = f"with q {tuple(q.shape)} and k {tuple(k.shape)}"
    calls = {
        f"dot_product_similarity(q, k) {sizes}": {"k": k, "q": q},
        f"dot_product_similarity(q, k) {sizes}, both transposed": {"q": turned(q), "k": turned(k)},
        f"dot_product_similarity(q, q) with q {tuple(q.shape)}": {"q": q, "k": q},
        f"dot_product_similarity(100 * q, k) {sizes}": {"q": 100 * q, "k": k},
    }
    expected = [solution.dot_product_similarity(**arguments) for arguments in calls.values()]
    found = answers(problem.dot_product_similarity, map(copied, calls.values()))
    for call, actual, right in zip(calls, found, expected, strict=True):
        # A sum of a thousand products is rounded a thousand times.
        atol = 0.1 if "(100 * q" in call else 1e-3
        check(actual, right, call, sizes={"d": d}, atol=atol)


@pytest.mark.points(0.25)
def test_hidden_similarity_of_other_vectors(problem, solution, rng):
    """dot_product_similarity is right for many or large vectors, in any order in memory"""
    # In float64, as float32 leaves few digits where large products cancel.
    normal = partial(rng.normal, dtype=torch.float64)
    pairs = {
        "of 600 queries": (normal(600, 1), normal(1, 1)),
        "of 600 keys": (normal(1, 1), normal(600, 1)),
        "of 300 matrices": (normal(300, 1, 2), normal(300, 1, 2)),
        "in another order in memory": (turned(normal(2, 3, 4, 5)), turned(normal(2, 3, 2, 5))),
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
        cases.append((f"dot_product_similarity(q, k), where only {name} learns", arguments))
    both = solution.dot_product_similarity, problem.dot_product_similarity
    check_like(*both, rng, cases, atol=1e-8)
    q, k = (1e6 * normal(n, 3).requires_grad_() for n in (4, 5))
    case = ("dot_product_similarity(q, k) with numbers near a million", {"q": q, "k": k})
    check_like(*both, rng, [case], atol=10.0)  # products are near 1e12


@pytest.mark.points(0.25)
def test_hidden_softmax_of_other_tensors(problem, solution, rng):
    """Softmax and its gradients are right for many slices, -inf, any order in memory and dtype"""
    hidden = rng.normal(3, 4)
    hidden[1, 2] = hidden[2, 0] = -INF
    # Quarters, which float32 holds beside a million, too.
    quarters, far = rng.normal(3, 4, dtype=torch.float64), rng.normal(3, 1, dtype=torch.float64)
    xs = {
        "300 matrices": rng.normal(300, 1, 2),
        "entries of -inf": hidden,
        "another order in memory": turned(rng.normal(2, 3, 2, 4)),
        "rows a million apart": (4 * quarters).round() / 4 + (1e6 * far).round(),
        "float16": rng.normal(3, 4, dtype=torch.float16),
        "bfloat16": rng.normal(3, 4, dtype=torch.bfloat16),
    }
    cases = [
        (f"softmax(x, {dim}) with {what}", {"x": x.requires_grad_(), "dim": dim})
        for what, x in xs.items()
        for dim in ((0, 2) if x.dim() == 3 else (-1, -2))
    ]
    check_like(solution.softmax, problem.softmax, rng, cases)


@pytest.mark.points(0.75)
@pytest.mark.parametrize(
    "shape", [(9,), (2, 7), (4, 1, 3), (3, 2, 1, 5), (2, 1, 3, 2, 4), (70, 1, 2)], ids=str
)
def test_hidden_softmax(problem, solution, rng, shape):
    """Softmax is right for other shapes and every dim"""
    other = rng.normal(*shape[::-1]).permute(*reversed(range(len(shape))))
    many = rng.normal(2, 1100) / 4
    calls = [(other, 0), (other, -1), (many, 1), (many.mT, 0)]
    for dim in range(-len(shape), len(shape)):
        offset = 10 * rng.normal(*[1] * len(shape))
        calls.append((3 * rng.normal(*shape) + offset, dim))
    # Copies in the same order in memory: a wrong solution may change x.
    found = answers(problem.softmax, [(x.clone(), dim) for x, dim in calls])
    for (x, dim), actual in zip(calls, found, strict=True):
        call = f"softmax(x, {dim}) with x of shape {tuple(x.shape)}"
        check(actual, solution.softmax(x, dim), call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("shape", [(9,), (2, 7), (3, 2, 5), (2, 1, 3, 2, 4), (70, 2)], ids=str)
def test_hidden_gradients(problem, solution, rng, shape):
    """The gradients of both functions are right for other sizes and every dim"""
    dims = range(-len(shape), len(shape))
    xs = [(3 * rng.normal(*shape) + 10).requires_grad_() for _ in dims]
    cases = [
        (f"softmax(x, {dim}) with x of shape {shape}", {"x": x, "dim": dim})
        for dim, x in zip(dims, xs, strict=True)
    ]
    check_like(solution.softmax, problem.softmax, rng, cases, atol=1e-4)
    *leading, n = shape
    q, k = (rng.normal(*leading, size, 4).requires_grad_() for size in (n, n + 2))
    call = f"dot_product_similarity(q, k) with q {tuple(q.shape)} and k {tuple(k.shape)}"
    both = solution.dot_product_similarity, problem.dot_product_similarity
    check_like(*both, rng, [(call, {"q": q, "k": k})], atol=1e-3)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hidden_slices_far_apart(problem, solution, rng, dtype):
    """Softmax is right when slices, or the entries of one, lie far apart, in every dtype"""
    largest = torch.finfo(dtype).max
    near = torch.tensor([0.0, 2.0, -3.0, -INF], dtype=torch.float64)
    far = torch.tensor([0.0, -largest / 8, -largest / 4, -INF], dtype=torch.float64)
    rows = [near, near * 30 + 150, near * 30 - 200, far, far + largest, far - largest / 2]
    if dtype in (torch.float32, torch.float64):
        # In half precision a number near 150 represents a whole range of scores.
        rows += [near + 150, near - 200]
    rows.append(torch.tensor([largest, -largest, 0.0, -INF], dtype=torch.float64))
    x = torch.stack(rows).to(dtype)
    calls = [
        ("softmax(x, 1) of rows far apart", (x, 1)),
        ("softmax(x, 0) of columns far apart", (x.T.contiguous(), 0)),
        # Each row by itself: then all of x may lie far below zero.
        *((f"softmax(tensor({row.tolist()}))", (row,)) for row in x.unbind()),
    ]
    found = answers(problem.softmax, [(x.clone(), *dim) for _, (x, *dim) in calls])
    for (call, arguments), actual in zip(calls, found, strict=True):
        check(actual, solution.softmax(*arguments), call)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hidden_minus_infinity(problem, solution, rng, dtype):
    """Softmax gives -inf the weight 0, and NaN where a whole slice is -inf, in every dtype"""
    calls = []
    for dim in range(-3, 3):
        x = rng.normal(3, 4, 5, dtype=dtype)
        x[torch.rand(x.shape, generator=rng.generator) < 0.3] = -INF
        slices = x.movedim(dim, -1)  # a view, so an assignment there changes x
        slices[1, 1] = -INF
        slices[0, 2] = -INF
        slices[0, 2, 1] = torch.finfo(dtype).min
        calls.append((x, dim))
    found = answers(problem.softmax, [(x.clone(), dim) for x, dim in calls])
    for (x, dim), actual in zip(calls, found, strict=True):
        call, expected = f"softmax(x, {dim}) where x has entries of -inf", solution.softmax(x, dim)
        check(actual, expected, call)
        check_that(actual, oracles.exactly_zero, call, (x == -INF) & (expected == 0))


@pytest.mark.points(0.25)
def test_hidden_precision(problem, solution, rng):
    """Both functions keep all digits of float64, along every dim"""
    normal = partial(rng.normal, dtype=torch.float64)
    calls = [(4 * normal(3, 4, 5), dim) for dim in range(-3, 3)]
    found = answers(problem.softmax, [(x.clone(), dim) for x, dim in calls])
    for (x, dim), actual in zip(calls, found, strict=True):
        expected = solution.softmax(x, dim)
        check(actual, expected, f"softmax(x, {dim})", rtol=1e-13, atol=1e-15)
    q, k = normal(2, 3, 5), normal(2, 4, 5)
    expected = solution.dot_product_similarity(q, k)
    actual = problem.dot_product_similarity(q, k)
    check(actual, expected, "dot_product_similarity(q, k)", rtol=1e-13, atol=1e-13)


@pytest.mark.points(0.25)
def test_hidden_second_call(problem, solution, rng):
    """A second call with other numbers, dim or dtype changes nothing about the first"""
    x, y, q, k = rng.normal(3, 3), rng.normal(3, 3), rng.normal(3, 4), rng.normal(5, 4)
    weights, scores = solution.softmax(x), solution.dot_product_similarity(q, k)
    later = [(y, 1, -1), (y, 1, 0), (y.double(), 1, -1), (y.clone(), -1, -1), (x, -2, -1)]
    calls = [(tensor, factor * tensor, dim) for tensor, factor, dim in later]
    first_weights = problem.softmax(x)
    first_scores = problem.dot_product_similarity(q.clone(), k.clone())
    for z, numbers, dim in calls:
        expected = solution.softmax(numbers, dim)
        z.copy_(numbers)  # also where an earlier call changed its argument
        check(problem.softmax(z, dim), expected, f"a later call of softmax, with dim {dim}")
    expected = solution.dot_product_similarity(q + 1, k * 2)
    actual = problem.dot_product_similarity(q + 1, k * 2)
    check(actual, expected, "the second call of dot_product_similarity")
    check(first_weights, weights, "softmax(x), looked at after other calls")
    check(first_scores, scores, "dot_product_similarity(q, k), looked at after another call")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_hidden_arguments_are_left_alone(problem, rng, dtype):
    """Neither function changes its arguments or the random state, for every shape and dim"""
    with nothing_left_behind("dot_product_similarity(q, k) and softmax(x)"):
        calls = []
        for shape in [(5,), (2, 3), (2, 3, 4), (2, 1, 3, 2)]:
            for dim in range(-len(shape), len(shape)):
                x = rng.normal(*shape, dtype=dtype) * 100
                calls.append((f"softmax(x, {dim}) with x of shape {shape}", {"x": x, "dim": dim}))
        check_left_alone(problem.softmax, calls, [arguments["x"] for _, arguments in calls])
        calls, forms = [], []
        for *leading, n, m in [(3, 3), (2, 3, 1), (2, 3, 3, 2)]:
            q, k = rng.normal(*leading, n, 3, dtype=dtype), rng.normal(*leading, m, 3, dtype=dtype)
            calls.append(("dot_product_similarity(q, k)", {"q": q, "k": k}))
            forms.append(torch.empty(*leading, n, m, dtype=dtype))
        check_left_alone(problem.dot_product_similarity, calls, forms)
