"""Tests of problem 01. Run them with `uv run pytest` in this folder."""

import math

import pytest
import torch
from grader.compare import check, check_gradients, gradients, require

# Nothing in problem.py may call these, under any name.
FORBIDDEN = ("softmax", "softmin", "log_softmax", "logsumexp")

INF = math.inf


def similarity_by_hand(q, k):
    """Every dot product, one multiplication at a time: the definition, made runnable."""
    return [[sum(a * b for a, b in zip(row, other, strict=True)) for other in k] for row in q]


def softmax_by_hand(row):
    """The softmax of a list of numbers: e to the power of each, divided by the sum of all."""
    largest = max(row)
    powers = [math.exp(entry - largest) for entry in row]
    return [power / sum(powers) for power in powers]


def softmax_along(x, dim):
    """`softmax_by_hand` for every slice of x along `dim`."""
    slices = x.double().movedim(dim, -1)
    rows = [softmax_by_hand(row) for row in slices.reshape(-1, slices.shape[-1]).tolist()]
    weights = torch.tensor(rows, dtype=torch.float64).reshape(slices.shape)
    return weights.movedim(-1, dim).to(x.dtype)


@pytest.mark.points(0.5)
def test_similarity_in_numbers(problem):
    """dot_product_similarity of two queries and three keys gives 2 x 3 dot products"""
    q = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    k = torch.tensor([[3.0, 1.0], [-1.0, 4.0], [0.5, 0.0]])
    expected = torch.tensor([[5.0, 7.0, 0.5], [-1.0, -4.0, 0.0]])
    check(problem.dot_product_similarity(q, k), expected, "dot_product_similarity(q, k)")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)], ids=["2-D", "3-D", "4-D"])
def test_similarity_with_leading_dimensions(problem, draw, leading):
    """dot_product_similarity works on each matrix of a batch by itself"""
    q, k = draw(*leading, 4, 6), draw(*leading, 5, 6)
    pairs = zip(q.reshape(-1, 4, 6).tolist(), k.reshape(-1, 5, 6).tolist(), strict=True)
    expected = torch.tensor([similarity_by_hand(a, b) for a, b in pairs], dtype=q.dtype)
    call = f"dot_product_similarity(q, k) with q {tuple(q.shape)} and k {tuple(k.shape)}"
    actual = problem.dot_product_similarity(q, k)
    check(actual, expected.reshape(*leading, 4, 5), call, sizes={"d": 6})


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    ("numbers", "weights", "digits"),
    [
        (
            [0.3, -0.1, -0.2, 0.5, 0.3, 0.7],
            [0.1669, 0.1119, 0.1013, 0.2039, 0.1669, 0.2490],
            4,
        ),
        (
            [2.1, -0.7, -1.4, 3.5, 2.1, 4.9],
            [0.0443, 0.0027, 0.0013, 0.1795, 0.0443, 0.7279],
            4,
        ),
        ([4.0, 5.0], [0.2689, 0.7311], 4),
        ([1.0, 10.0], [0.0001, 0.9999], 4),
    ],
    ids=["six numbers", "seven times as large", "4 and 5", "1 and 10"],
)
def test_softmax_in_numbers(problem, numbers, weights, digits):
    """softmax gives the weights of the worked example"""
    actual = problem.softmax(torch.tensor(numbers))
    check(actual, torch.tensor(weights), f"softmax(tensor({numbers}))", atol=0.6 * 10**-digits)


@pytest.mark.points(1)
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_softmax_along_every_dim(problem, draw, dim):
    """softmax makes weights that sum to 1 along the dimension it is told"""
    x = draw(3, 4, 5)
    call = f"softmax(x, dim={dim}) with x of shape (3, 4, 5)"
    check(problem.softmax(x, dim=dim), softmax_along(x, dim), call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize("shape", [(6,), (1, 4), (4, 1), (2, 1, 3, 2)], ids=str)
def test_softmax_of_any_shape(problem, draw, shape):
    """softmax returns the shape that came in, and works along the last dimension by default"""
    x = draw(*shape)
    check(problem.softmax(x), softmax_along(x, -1), f"softmax(x) with x of shape {shape}")


@pytest.mark.points(1)
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_large_numbers(problem, dim):
    """softmax stays right for numbers so large or so small that exp alone gives inf or 0"""
    x = torch.tensor(
        [[1000.0, 1001.0, 999.0], [-1000.0, -1002.0, -1001.0], [0.5, 1e30, 3e300]],
        dtype=torch.float64,
    )
    x = x if dim == 1 else x.T.contiguous()
    call = f"softmax(x, dim={dim}) with slices near 1000, near -1000 and up to 3e300"
    check(problem.softmax(x, dim), softmax_along(x, dim), call)


@pytest.mark.points(0.5)
def test_softmax_of_minus_infinity(problem):
    """softmax gives an entry of -inf exactly 0, and a row of nothing else NaN"""
    x = torch.tensor([[0.5, -INF, 1.5], [-INF, -INF, 2.0], [-INF, -INF, -INF]])
    weights = softmax_by_hand([0.5, 1.5])
    expected = torch.tensor([[weights[0], 0, weights[1]], [0, 0, 1], [math.nan] * 3])
    actual = problem.softmax(x)
    check(actual, expected, "softmax(x) where x has entries of -inf")
    zeros = actual[:2][x[:2] == -INF]
    require((zeros == 0).all(), "softmax(x)\nThe weight of an entry of -inf should be exactly 0.")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_dtype_is_kept(problem, draw, dtype):
    """Both functions return the dtype that came in, with its precision"""
    q, k, x = draw(3, 4, dtype=dtype), draw(2, 4, dtype=dtype), draw(3, 5, dtype=dtype) * 20
    scores = torch.tensor(similarity_by_hand(q.tolist(), k.tolist()), dtype=dtype)
    name = str(dtype).removeprefix("torch.")
    check(problem.dot_product_similarity(q, k), scores, f"dot_product_similarity(q, k) in {name}")
    check(problem.softmax(x), softmax_along(x, -1), f"softmax(x) in {name}")


@pytest.mark.points(0.5)
def test_gradients_flow(problem, draw):
    """Gradients flow through both functions"""
    q, k = draw(3, 4).requires_grad_(), draw(2, 4).requires_grad_()
    g = draw(3, 2)
    found = gradients(
        problem.dot_product_similarity(q, k), {"q": q, "k": k}, g, "dot_product_similarity(q, k)"
    )
    expected = {"q": similarity_by_hand(g.tolist(), k.T.tolist())}
    expected["k"] = similarity_by_hand(g.T.tolist(), q.T.tolist())
    expected = {name: torch.tensor(rows, dtype=q.dtype) for name, rows in expected.items()}
    check_gradients(found, expected, "dot_product_similarity(q, k)")

    # With weights w and upstream g, entry i of softmax's gradient is w_i (g_i - sum_j w_j g_j).
    x, g = draw(5).requires_grad_(), draw(5)
    found = gradients(problem.softmax(x), {"x": x}, g, "softmax(x)")
    weights = softmax_by_hand(x.tolist())
    mean = sum(w * u for w, u in zip(weights, g.tolist(), strict=True))
    by_hand = [w * (u - mean) for w, u in zip(weights, g.tolist(), strict=True)]
    check_gradients(found, {"x": torch.tensor(by_hand, dtype=x.dtype)}, "softmax(x)")


@pytest.mark.points(0.25)
def test_arguments_are_left_alone(problem, draw):
    """Neither function changes its arguments"""
    q, k, x = draw(3, 4), draw(2, 4), draw(3, 5)
    before = q.clone(), k.clone(), x.clone()
    problem.dot_product_similarity(q, k)
    problem.softmax(x, 0)
    for name, now, then in zip("qkx", (q, k, x), before, strict=True):
        require(torch.equal(now, then), f"Your code changed its argument {name}.")


@pytest.mark.points(0.25)
def test_softmax_is_your_own(problem, draw):
    """softmax is written without PyTorch's softmax, softmin, log_softmax and logsumexp"""
    problem.softmax(draw(2, 3), 1)


# --- hidden tests ---


@pytest.mark.points(1)
@pytest.mark.parametrize("shape", [(7, 3, 9), (2, 3, 5, 4), (1, 8, 2), (2, 2, 2, 3, 2)], ids=str)
def test_hidden_similarity(problem, solution, draw, shape):
    """dot_product_similarity is right for other sizes, and so are its gradients"""
    *leading, n, d = shape
    q, k = draw(*leading, n, d).requires_grad_(), draw(*leading, n + 2, d).requires_grad_()
    upstream = draw(*leading, n, n + 2)
    call = f"dot_product_similarity(q, k) with q {tuple(q.shape)} and k {tuple(k.shape)}"
    expected = solution.dot_product_similarity(q=q, k=k)
    actual = problem.dot_product_similarity(q=q, k=k)
    check(actual, expected, call, sizes={"d": d})
    inputs = {"q": q, "k": k}
    check_gradients(
        gradients(actual, inputs, upstream, call),
        gradients(expected, inputs, upstream, call),
        call,
    )


@pytest.mark.points(1.5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(9,), (2, 7), (4, 1, 3), (3, 2, 1, 5), (2, 2, 3, 2, 4)], ids=str)
def test_hidden_softmax(problem, solution, draw, shape, dtype):
    """softmax is right for other shapes and every dim, and so are its gradients"""
    for dim in range(-len(shape), len(shape)):
        x = (draw(*shape) * 3 + draw(*[1] * len(shape)) * 50).to(dtype).requires_grad_()
        upstream = draw(*shape, dtype=dtype)
        call = f"softmax(x, {dim}) with x of shape {shape}"
        expected, actual = solution.softmax(x, dim), problem.softmax(x, dim)
        check(actual, expected, call)
        check_gradients(
            gradients(actual, {"x": x}, upstream, call),
            gradients(expected, {"x": x}, upstream, call),
            call,
        )


@pytest.mark.points(0.75)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_hidden_slices_far_apart(problem, solution, draw, dtype):
    """softmax is right when the slices lie far apart, along every dim"""
    largest = torch.finfo(dtype).max / 4
    centres = torch.tensor([-largest, -200.0, 0.0, 150.0, largest], dtype=dtype)
    spread = torch.tensor([0.0, 2.0, -3.0, -INF], dtype=dtype)
    x = centres[:, None] + spread
    check(problem.softmax(x, 1), solution.softmax(x, 1), "softmax(x, 1) of rows far apart")
    check(problem.softmax(x.T, 0), solution.softmax(x.T, 0), "softmax(x, 0) of columns far apart")


@pytest.mark.points(0.5)
def test_hidden_second_call(problem, solution, draw):
    """A second call with other numbers changes nothing about the first, nor the random state"""
    x, y, q, k = draw(3, 4), draw(3, 4), draw(3, 4), draw(5, 4)
    random_state = torch.get_rng_state()
    first, scores = problem.softmax(x), problem.dot_product_similarity(q, k)
    second, others = problem.softmax(y), problem.dot_product_similarity(q + 1, k)
    check(first, solution.softmax(x), "softmax(x), looked at after a second call")
    check(second, solution.softmax(y), "the second call of softmax")
    expected = solution.dot_product_similarity(q, k)
    check(scores, expected, "dot_product_similarity(q, k), looked at after a second call")
    expected = solution.dot_product_similarity(q + 1, k)
    check(others, expected, "the second call of dot_product_similarity")
    unchanged = torch.equal(torch.get_rng_state(), random_state)
    require(unchanged, "Your code changed the global random state; nothing here needs chance.")


@pytest.mark.points(0.25)
def test_hidden_arguments_are_left_alone(problem, draw):
    """Neither function changes its arguments, whatever the dim"""
    for dim in range(-3, 3):
        x, q, k = draw(2, 3, 4), draw(2, 3, 4), draw(2, 5, 4)
        before = x.clone(), q.clone(), k.clone()
        problem.softmax(x, dim)
        problem.dot_product_similarity(q, k)
        for name, now, then in zip("xqk", (x, q, k), before, strict=True):
            require(torch.equal(now, then), f"Your code changed its argument {name}.")
