"""Tests of problem 01. Run them with `uv run pytest` in this folder."""

import math

import pytest
import torch

from grader.testing.compare import check, check_gradients, gradients, require
from grader.testing.diagnose import attempt

# Nothing in problem.py may call these, under any name. The last one runs softmax inside.
FORBIDDEN = ("softmax", "softmin", "log_softmax", "logsumexp", "scaled_dot_product_attention")

INF = math.inf
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def table(text):
    """Read numbers that stand in rows and columns."""
    rows = [[float(number) for number in line.split()] for line in text.strip().splitlines()]
    return torch.tensor(rows, dtype=torch.float64)


# The worked example of the course: four queries, four keys and their scores, to eight digits.
QUERIES = table("""
     1.16797418 -0.73724956  0.75041732 -0.12204190  1.70315355  0.31347885  0.34485802  0.44609840
     3.30107262  0.52084263 -0.30178335  1.67578430 -0.51553690 -2.57282086  0.74921960 -0.11167390
     1.79346332  1.43356091  1.04335097 -0.17879843  0.64886601 -1.36614847  0.23380491  0.87536806
     1.47103375 -1.58489204 -0.45911092  0.28391595  0.21250504 -1.61590866 -1.29484902  0.00475083
""")
KEYS = table("""
    -0.27718816 -1.65065268  0.65895024 -0.30877976  0.08718337 -1.25869869 -0.18955500  0.19835477
     0.34020432  0.52734301  0.70054018  0.02666352 -0.47575991  0.27451574  0.31178952 -0.80116187
    -0.32764932 -0.14549352 -0.40258405  0.75537362  1.05953459 -1.34530308  1.99241804  0.17674986
    -1.40543092  0.43389184 -0.07028518  0.10003431  1.26343057 -2.07078610  0.51659185 -1.03069964
""")
SCORES = table("""
     1.20239352 -0.44310134  1.47906100 -0.80531921
     0.53823363  1.09303249  4.61797795  0.95396625
    -0.21525807  0.78011689  1.79464107  0.87754205
     4.11701088 -1.60160544 -0.03209583  0.24644341
""")


def similarity_by_hand(q, k):
    """Every dot product, one multiplication at a time: the definition, made runnable."""
    return [[sum(a * b for a, b in zip(row, other, strict=True)) for other in k] for row in q]


def softmax_by_hand(row):
    """The softmax of a list of numbers: e to the power of each, divided by the sum of all."""
    largest = max(row)
    powers = [math.exp(entry - largest) for entry in row]
    total = sum(powers)
    return [power / total for power in powers]


def softmax_gradient_by_hand(row, upstream):
    """The gradient of softmax: w_i (g_i - sum_j w_j g_j), with weights w and upstream g."""
    weights = softmax_by_hand(row)
    mean = sum(w * g for w, g in zip(weights, upstream, strict=True))
    return [w * (g - mean) for w, g in zip(weights, upstream, strict=True)]


def along(dim, by_hand, *tensors):
    """Apply `by_hand`, which goes from lists to a list, to every slice along `dim`."""
    moved = [tensor.detach().double().movedim(dim, -1) for tensor in tensors]
    slices = [tensor.reshape(-1, tensor.shape[-1]).tolist() for tensor in moved]
    rows = [by_hand(*row) for row in zip(*slices, strict=True)]
    result = torch.tensor(rows, dtype=torch.float64).reshape(moved[0].shape)
    return result.movedim(-1, dim).to(tensors[0].dtype)


def softmax_along(x, dim):
    """`softmax_by_hand` for every slice of x along `dim`."""
    return along(dim, softmax_by_hand, x)


def check_unchanged(before, after):
    """Check that the arguments, by name, are what they were before the call."""
    for name, then in before.items():
        require(
            torch.equal(after[name], then),
            f"Your code changed its argument {name}. Whoever called it may still need it: make a "
            "new tensor instead.",
        )


@pytest.mark.points(0.5)
def test_similarity_in_numbers(problem):
    """dot_product_similarity gives the scores of the worked examples"""
    q = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    k = torch.tensor([[3.0, 1.0], [-1.0, 4.0], [0.5, 0.0]])
    expected = torch.tensor([[5.0, 7.0, 0.5], [-1.0, -4.0, 0.0]])
    call = "dot_product_similarity(q=[[1, 2], [0, -1]], k=[[3, 1], [-1, 4], [0.5, 0]])"
    check(problem.dot_product_similarity(q=q, k=k), expected, call)

    call = "dot_product_similarity(QUERIES, KEYS)"
    actual = problem.dot_product_similarity(QUERIES.clone(), KEYS.clone())
    check(actual, SCORES, call, atol=2e-7, sizes={"d": 8})


@pytest.mark.points(0.75)
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
    """dot_product_similarity works on each matrix of a batch by itself, whatever the sizes"""
    q, k = rng.normal(*leading, n, d), rng.normal(*leading, m, d)
    pairs = zip(q.reshape(-1, n, d).tolist(), k.reshape(-1, m, d).tolist(), strict=True)
    scores = [similarity_by_hand(queries, keys) for queries, keys in pairs]
    expected = torch.tensor(scores, dtype=q.dtype).reshape(*leading, n, m)
    call = f"dot_product_similarity(q, k) with q {tuple(q.shape)} and k {tuple(k.shape)}"
    check(problem.dot_product_similarity(q, k), expected, call, sizes={"d": d})


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    ("numbers", "weights"),
    [
        ([0.3, -0.1, -0.2, 0.5, 0.3, 0.7], [0.1669, 0.1119, 0.1013, 0.2039, 0.1669, 0.2490]),
        ([2.1, -0.7, -1.4, 3.5, 2.1, 4.9], [0.0443, 0.0027, 0.0013, 0.1795, 0.0443, 0.7279]),
        ([4.0, 5.0], [0.2689, 0.7311]),
        ([1.0, 10.0], [0.0001, 0.9999]),
    ],
    ids=["six numbers", "seven times as large", "4 and 5", "1 and 10"],
)
def test_softmax_in_numbers(problem, numbers, weights):
    """Softmax gives the weights of the worked example, to four digits"""
    actual = problem.softmax(torch.tensor(numbers))
    check(actual, torch.tensor(weights), f"softmax(tensor({numbers}))", atol=0.6e-4)


@pytest.mark.points(0.75)
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_softmax_along_every_dim(problem, rng, dim):
    """Softmax makes weights that sum to 1 along the dimension it is told"""
    x = rng.normal(3, 4, 5)
    expected = softmax_along(x, dim)
    call = f"softmax(x, dim={dim}) with x of shape (3, 4, 5)"
    check(problem.softmax(x=x, dim=dim), expected, call)


@pytest.mark.points(0.5)
@pytest.mark.parametrize(
    "shape", [(6,), (1,), (2, 5), (1, 4), (4, 1), (3, 3, 3), (2, 1, 3, 2), (2, 1, 2, 3, 2)], ids=str
)
def test_softmax_of_any_shape(problem, rng, shape):
    """Softmax takes any number of dimensions and keeps the shape; by default dim is the last"""
    x = rng.normal(*shape)
    expected = softmax_along(x, -1)
    check(problem.softmax(x), expected, f"softmax(x) with x of shape {shape}")
    for dim in range(-len(shape), len(shape)):
        expected = softmax_along(x, dim)
        check(problem.softmax(x, dim), expected, f"softmax(x, {dim}) with x of shape {shape}")


@pytest.mark.points(0.75)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    "slices",
    [
        [[1000.0, 1001.0, 999.0], [1003.0, 1000.5, 1002.0]],
        [[-1000.0, -1002.0, -1001.0], [-1003.5, -1001.0, -1002.0]],
        [[1000.0, 1001.0, 999.0], [-1000.0, -1002.0, -1001.0], [0.5, 1e30, 3e300]],
        [[-1500.0, 0.0, 1500.0], [-3e300, -1e30, -0.5], [2.0, -1.0, 1.0]],
    ],
    ids=["near 1000", "near -1000", "slices far apart", "entries far apart"],
)
def test_softmax_of_large_numbers(problem, slices, dim):
    """Softmax stays right for numbers so large or so small that exp alone gives inf or 0"""
    rows = torch.tensor(slices, dtype=torch.float64)
    x = rows if dim == 1 else rows.T.contiguous()
    expected = softmax_along(x, dim)
    check(problem.softmax(x, dim), expected, f"softmax(x, dim={dim}) with the slices {slices}")


@pytest.mark.points(0.5)
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_minus_infinity(problem, dim):
    """Softmax gives an entry of -inf exactly 0, and a slice of nothing else NaN"""
    lowest = torch.finfo(torch.float32).min
    rows = torch.tensor(
        [[0.0, -INF, 1.5], [-INF, -INF, 2.0], [lowest, -INF, -INF], [-INF, -INF, -INF]]
    )
    x = rows if dim == 1 else rows.T.contiguous()
    expected = softmax_along(x, dim)
    call = f"softmax(x, dim={dim}) with the slices {rows.tolist()}"
    actual = problem.softmax(x, dim)
    check(actual, expected, call)
    require(
        (actual[expected == 0] == 0).all(),
        f"{call}\nAn entry of -inf got a small weight, but its weight should be exactly 0.",
    )


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtype_is_kept(problem, rng, dtype):
    """Both functions return the dtype that came in, and half precision doesn't overflow"""
    name = str(dtype).removeprefix("torch.")
    # Multiples of 1/2, whose products and sums every dtype holds without rounding.
    q, k = ((rng.normal(n, 4) * 2).round().clamp(-4, 4).to(dtype) / 2 for n in (3, 2))
    scores = torch.tensor(similarity_by_hand(q.tolist(), k.tolist()), dtype=dtype)
    check(problem.dot_product_similarity(q, k), scores, f"dot_product_similarity(q, k) in {name}")

    x = rng.normal(3, 5, dtype=dtype) * 2
    x[1, 3] = torch.finfo(dtype).max
    x[2] = torch.tensor([-300, -400, -300, -200, -300])
    expected = softmax_along(x, -1)
    check(problem.softmax(x), expected, f"softmax(x) in {name}")


@pytest.mark.points(0.25)
def test_float64_keeps_its_precision(problem, rng):
    """Both functions are right to more than twelve digits in float64"""
    q, k, x = rng.normal(3, 5), rng.normal(4, 5), rng.normal(4, 6) * 4
    x[0, 0] -= 25
    scores = torch.tensor(similarity_by_hand(q.tolist(), k.tolist()), dtype=torch.float64)
    call = "dot_product_similarity(q, k) in float64"
    check(problem.dot_product_similarity(q, k), scores, call, rtol=1e-13, atol=1e-13)
    weights = softmax_along(x, -1)
    check(problem.softmax(x), weights, "softmax(x) in float64", rtol=1e-13, atol=1e-15)


@pytest.mark.points(0.5)
def test_gradients_flow(problem, rng):
    """Gradients flow through both functions, and large numbers don't spoil them"""
    q, k, g = rng.normal(3, 4).requires_grad_(), rng.normal(2, 4).requires_grad_(), rng.normal(3, 2)
    expected = {
        "q": torch.tensor(similarity_by_hand(g.tolist(), k.T.tolist()), dtype=q.dtype),
        "k": torch.tensor(similarity_by_hand(g.T.tolist(), q.T.tolist()), dtype=k.dtype),
    }
    call = "dot_product_similarity(q, k)"
    found = gradients(problem.dot_product_similarity(q, k), {"q": q, "k": k}, g, call)
    check_gradients(found, expected, call)

    for what, shift in [("", 0.0), (" with rows near 0, 1000 and -1000", 1000.0)]:
        for dim in (0, 1):
            x = (rng.normal(3, 4) + torch.tensor([[0.0], [shift], [-shift]])).requires_grad_()
            g, call = rng.normal(3, 4), f"softmax(x, {dim}){what}"
            expected = {"x": along(dim, softmax_gradient_by_hand, x, g)}
            found = gradients(problem.softmax(x, dim), {"x": x}, g, call)
            check_gradients(found, expected, call)


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arguments_are_left_alone(problem, rng, dtype):
    """Neither function changes its arguments"""
    given = {"q": rng.normal(3, 4, dtype=dtype), "k": rng.normal(2, 4, dtype=dtype)}
    before = {name: tensor.clone() for name, tensor in given.items()}
    problem.dot_product_similarity(**given)
    check_unchanged(before, given)
    for dim in range(-2, 2):
        given = {"x": rng.normal(3, 4, dtype=dtype)}
        given["x"][1, 2] = -INF
        before = {"x": given["x"].clone()}
        problem.softmax(given["x"], dim)
        check_unchanged(before, given)


@pytest.mark.points(0.25)
def test_nothing_is_kept_between_calls(problem, rng):
    """A second call answers for its own numbers, and chance has no part in it"""
    random_state = torch.get_rng_state()
    kept = []
    for number, shift in [("first", 0.0), ("second", -1000.0), ("third", 2000.0)]:
        q, k, x = rng.normal(3, 4), rng.normal(2, 4), rng.normal(3, 4) + shift
        expected = softmax_along(x, -1)
        actual = problem.softmax(x)
        check(actual, expected, f"the {number} softmax(x)")
        kept.append((actual, expected, f"the {number} softmax(x), looked at after other calls"))
        expected = torch.tensor(similarity_by_hand(q.tolist(), k.tolist()), dtype=torch.float64)
        actual = problem.dot_product_similarity(q, k)
        check(actual, expected, f"the {number} dot_product_similarity(q, k)")
    x.neg_()
    expected = softmax_along(x, -1)
    check(problem.softmax(x), expected, "softmax(x), called again after x was changed")
    for actual, expected, call in kept:
        check(actual, expected, call)
    require(
        torch.equal(torch.get_rng_state(), random_state),
        "Your code changed PyTorch's random state (manual_seed, rand?); nothing here needs chance.",
    )


@pytest.mark.points(0.25)
def test_softmax_is_your_own(problem, rng):
    """Softmax is written without the functions of PyTorch that contain it"""
    x = rng.normal(2, 3)
    expected = softmax_along(x, 1)
    check(problem.softmax(x, 1), expected, "softmax(x, 1)")


def probe(problem):
    """Ask a few small fixed questions; the answers tell known mistakes apart."""
    q, k, x = _waves(2, 2, 3, 4), _waves(2, 2, 5, 4, start=100), _waves(2, 3, 4, start=200)
    far = torch.tensor([[1000.0, 1001.0, 999.0], [-1000.0, -1002.0, -1001.0], [0.0, -30.0, 1.0]])
    far = far.double()
    masked = torch.tensor([[0.5, -INF, 1.5], [-INF, -INF, -3e38], [-INF, -INF, -INF]])
    half = torch.tensor([[300.0, 0.0, -INF]])

    def similarity(q, k):
        return problem.dot_product_similarity(q.clone(), k.clone())

    def softmax(x, *dim):
        return problem.softmax(x.clone(), *dim)

    return {
        "similarity.matrices": attempt(similarity, q[0, 0], k[0, 0]),
        "similarity.batches": attempt(similarity, q[0], k[0]),
        "similarity.batches of batches": attempt(similarity, q, k),
        "similarity.square": attempt(similarity, q[0, 0, :2, :2], k[0, 0, :2, :2]),
        "similarity.cube": attempt(similarity, _waves(3, 3, 3), _waves(3, 3, 3, start=30)),
        "similarity.one of each": attempt(similarity, q[:1, :1, :1], k[:1, :1, :1]),
        "similarity.float32": attempt(similarity, q[0, 0].float(), k[0, 0].float()),
        "similarity.bfloat16": attempt(
            similarity, q[0, 0].bfloat16().round(), x[0].bfloat16().round()
        ),
        "similarity.only float32": attempt(_only_float32, similarity, q, k),
        "similarity.gradients": attempt(_gradients, similarity, q[0], k[0]),
        "similarity.changes": attempt(_changes, problem.dot_product_similarity, q, k),
        "similarity.second call": attempt(
            lambda: _agree(similarity(q, k) * 1.5, similarity(q, k * 1.5))
        ),
        "similarity.random state": attempt(_random_state_changes, similarity, q, k),
        "softmax.default": attempt(softmax, x),
        "softmax.dim 0": attempt(softmax, x, 0),
        "softmax.dim 1": attempt(softmax, x, 1),
        "softmax.dim -2": attempt(softmax, x, -2),
        "softmax.square": attempt(softmax, x[0, :2, :2], 0),
        "softmax.one row": attempt(softmax, x[0, 0]),
        "softmax.one column": attempt(softmax, x[0, :, :1], 0),
        "softmax.four dimensions": attempt(softmax, q[:, :, :2, :2], 1),
        "softmax.near 1000": attempt(softmax, far[0]),
        "softmax.near -1000": attempt(softmax, far[1]),
        "softmax.rows far apart": attempt(softmax, far),
        "softmax.columns far apart": attempt(softmax, far.T, 0),
        "softmax.up to 3e300": attempt(softmax, torch.tensor([0.5, 1e30, 3e300], dtype=x.dtype)),
        "softmax.minus infinity": attempt(softmax, masked[0]),
        "softmax.minus infinity beside -3e38": attempt(softmax, masked[1]),
        "softmax.all minus infinity": attempt(softmax, masked[2]),
        "softmax.zeros": attempt(lambda: (softmax(masked)[:2] == 0).sum()),
        "softmax.float32": attempt(softmax, x.float()),
        "softmax.float16": attempt(softmax, half.half()),
        "softmax.bfloat16": attempt(softmax, half.bfloat16()),
        "softmax.only float32": attempt(_only_float32, softmax, x),
        "softmax.digits": attempt(lambda: _agree(softmax(x * 9), softmax_along(x * 9, -1))),
        "softmax.gradient": attempt(_gradients, softmax, x),
        "softmax.gradient far apart": attempt(_gradients, softmax, far * 2),
        "softmax.changes float64": attempt(_changes, problem.softmax, x),
        "softmax.changes float32": attempt(_changes, problem.softmax, x.float()),
        "softmax.changes minus infinity": attempt(_changes, problem.softmax, masked),
        "softmax.second call": attempt(
            lambda: (softmax(x), _agree(softmax(x * 2), softmax_along(x * 2, -1)))[1]
        ),
        "softmax.random state": attempt(_random_state_changes, softmax, x),
    }


def _waves(*shape, start=0):
    """Numbers between -2 and 2 that look random but are the same everywhere."""
    return 2 * torch.sin(torch.arange(math.prod(shape), dtype=torch.float64) + start).reshape(shape)


def _gradients(function, *tensors):
    """All gradients of a weighted sum of what the function returns, one after the other."""
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    result = function(*leaves)
    found = torch.autograd.grad((result * _waves(*result.shape, start=50)).sum(), leaves)
    all_of_them = torch.cat([gradient.flatten() for gradient in found])
    # If there is NaN among them, how torch happens to run the function decides where.
    return all_of_them if all_of_them.isfinite().all() else all_of_them * math.nan


def _changes(function, *tensors):
    given = [tensor.clone() for tensor in tensors]
    function(*given)
    return not all(torch.equal(a, b) for a, b in zip(given, tensors, strict=True))


def _agree(actual, expected):
    return bool(((actual - expected).abs() <= 1e-12 * expected.abs() + 1e-15).all())


def _random_state_changes(function, *tensors):
    torch.rand(1)
    before = torch.get_rng_state()
    function(*tensors)
    return not torch.equal(torch.get_rng_state(), before)


def _only_float32(function, *tensors):
    """Whether a result in float64 holds no more than float32 can."""
    result = function(*tensors)
    return torch.equal(result, result.float().double())


# --- hidden tests ---


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "shape",
    [(6, 4), (7, 3, 9), (2, 3, 5, 4), (1, 8, 2), (2, 2, 2, 3, 2), (2, 1, 1, 3, 2, 1)],
    ids=str,
)
def test_hidden_similarity(problem, solution, rng, shape):
    """dot_product_similarity is right for other sizes, and so are its gradients"""
    *leading, n, d = shape
    q, k = (
        rng.normal(*leading, n, d).requires_grad_(),
        rng.normal(*leading, n + 2, d).requires_grad_(),
    )
    upstream = rng.normal(*leading, n, n + 2)
    call = f"dot_product_similarity(q, k) with q {tuple(q.shape)} and k {tuple(k.shape)}"
    expected = solution.dot_product_similarity(q, k)
    actual = problem.dot_product_similarity(k=k, q=q)
    check(actual, expected, call, sizes={"d": d})
    inputs = {"q": q, "k": k}
    check_gradients(
        gradients(actual, inputs, upstream, call),
        gradients(expected, inputs, upstream, call),
        call,
    )
    call = f"dot_product_similarity(q, q) with q {tuple(q.shape)}"
    expected = solution.dot_product_similarity(q, q)
    check(problem.dot_product_similarity(q, q), expected, call, sizes={"d": d})


@pytest.mark.points(1.25)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(9,), (2, 7), (4, 1, 3), (3, 2, 1, 5), (2, 1, 3, 2, 4)], ids=str)
def test_hidden_softmax(problem, solution, rng, shape, dtype):
    """Softmax is right for other shapes and every dim, and so are its gradients"""
    for dim in range(-len(shape), len(shape)):
        offset = rng.normal(*[1] * len(shape)) * (100 if dtype == torch.float64 else 10)
        x = (rng.normal(*shape) * 3 + offset).to(dtype).requires_grad_()
        upstream = rng.normal(*shape, dtype=dtype)
        call = f"softmax(x, {dim}) with x of shape {shape}"
        expected, actual = solution.softmax(x, dim), problem.softmax(x, dim)
        check(actual, expected, call)
        check_gradients(
            gradients(actual, {"x": x}, upstream, call),
            gradients(expected, {"x": x}, upstream, call),
            call,
        )


@pytest.mark.points(0.75)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hidden_slices_far_apart(problem, solution, rng, dtype):
    """Softmax is right when slices, or the entries of one, lie far apart, in every dtype"""
    largest = torch.finfo(dtype).max
    near = torch.tensor([0.0, 2.0, -3.0, -INF], dtype=torch.float64)
    far = torch.tensor([0.0, -largest / 8, -largest / 4, -INF], dtype=torch.float64)
    rows = [near, near * 30 + 150, near * 30 - 200, far, far + largest, far - largest / 2]
    if dtype in (torch.float32, torch.float64):
        # In half precision a number near 150 stands for a whole range of scores.
        rows += [near + 150, near - 200]
    rows.append(torch.tensor([largest, -largest, 0.0, -INF], dtype=torch.float64))
    x = torch.stack(rows).to(dtype)
    columns = x.T.contiguous()
    expected = solution.softmax(x, 1)
    check(problem.softmax(x, 1), expected, "softmax(x, 1) of rows far apart")
    check(problem.softmax(columns, 0), expected.T, "softmax(x, 0) of columns far apart")
    for row in x.unbind():  # each by itself: then all of x may lie far below zero
        expected = solution.softmax(row)
        check(problem.softmax(row), expected, f"softmax(tensor({row.tolist()}))")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hidden_minus_infinity(problem, solution, rng, dtype):
    """Softmax gives -inf the weight 0, and a slice of -inf NaN, along every dim, in every dtype"""
    for dim in range(-3, 3):
        x = rng.normal(3, 4, 5, dtype=dtype)
        x[torch.rand(x.shape, generator=rng.generator) < 0.3] = -INF
        slices = x.movedim(dim, -1)  # a view, so what is set there is set in x
        slices[1, 1] = -INF
        slices[0, 2] = -INF
        slices[0, 2, 1] = torch.finfo(dtype).min
        call = f"softmax(x, {dim}) where x has entries of -inf"
        expected, actual = solution.softmax(x, dim), problem.softmax(x, dim)
        check(actual, expected, call)
        zeros = (x == -INF) & (expected == 0)
        require((actual[zeros] == 0).all(), f"{call}\nThe weight of -inf should be exactly 0.")


@pytest.mark.points(0.25)
def test_hidden_precision(problem, solution, rng):
    """Both functions keep all digits of float64, along every dim"""
    for dim in range(-3, 3):
        x = rng.normal(3, 4, 5) * 4
        expected = solution.softmax(x, dim)
        check(problem.softmax(x, dim), expected, f"softmax(x, {dim})", rtol=1e-13, atol=1e-15)
    q, k = rng.normal(2, 3, 5), rng.normal(2, 4, 5)
    expected = solution.dot_product_similarity(q, k)
    actual = problem.dot_product_similarity(q, k)
    check(actual, expected, "dot_product_similarity(q, k)", rtol=1e-13, atol=1e-13)


@pytest.mark.points(0.25)
def test_hidden_second_call(problem, solution, rng):
    """A second call with other numbers, dim or dtype changes nothing about the first"""
    x, y, q, k = rng.normal(3, 3), rng.normal(3, 3), rng.normal(3, 4), rng.normal(5, 4)
    weights, scores = solution.softmax(x), solution.dot_product_similarity(q, k)
    first_weights = problem.softmax(x)
    first_scores = problem.dot_product_similarity(q.clone(), k.clone())
    for z, dim in [(y, -1), (y, 0), (y.float(), -1), (-y, -1), (x.mul_(-2), -1)]:
        expected = solution.softmax(z, dim)
        check(problem.softmax(z, dim), expected, f"a later call of softmax, with dim {dim}")
    expected = solution.dot_product_similarity(q + 1, k * 2)
    actual = problem.dot_product_similarity(q + 1, k * 2)
    check(actual, expected, "the second call of dot_product_similarity")
    check(first_weights, weights, "softmax(x), looked at after other calls")
    check(first_scores, scores, "dot_product_similarity(q, k), looked at after another call")


@pytest.mark.points(0.25)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hidden_arguments_are_left_alone(problem, rng, dtype):
    """Neither function changes its arguments or the random state, whatever the shape and dim"""
    random_state = torch.get_rng_state()
    for shape in [(5,), (2, 3), (2, 3, 4), (2, 1, 3, 2)]:
        for dim in range(-len(shape), len(shape)):
            x = rng.normal(*shape, dtype=dtype) * 100
            before = {"x": x.clone()}
            problem.softmax(x, dim)
            check_unchanged(before, {"x": x})
    for *leading, n, m in [(3, 3), (2, 3, 1), (2, 3, 3, 2)]:
        given = {
            "q": rng.normal(*leading, n, 3, dtype=dtype),
            "k": rng.normal(*leading, m, 3, dtype=dtype),
        }
        before = {name: tensor.clone() for name, tensor in given.items()}
        problem.dot_product_similarity(**given)
        check_unchanged(before, given)
    unchanged = torch.equal(torch.get_rng_state(), random_state)
    require(unchanged, "Your code changed PyTorch's random state; nothing here needs chance.")
