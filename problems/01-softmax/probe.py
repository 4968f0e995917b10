"""Tells known mistakes in problem 01 apart: an instrument of the grader's, not a lesson."""

import math

import torch
from grader.testing.diagnose import attempt

from worked_example import softmax_by_hand, waves

INF = math.inf


def probe(problem):
    """Ask a few small fixed questions; known mistakes answer them differently."""
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
        "softmax.digits": attempt(lambda: _agree(softmax(x * 9), _softmax_of_rows(x * 9))),
        "softmax.gradient": attempt(_gradients, softmax, x),
        "softmax.gradient far apart": attempt(_gradients, softmax, far * 2),
        "softmax.changes float64": attempt(_changes, problem.softmax, x),
        "softmax.changes float32": attempt(_changes, problem.softmax, x.float()),
        "softmax.changes minus infinity": attempt(_changes, problem.softmax, masked),
        "softmax.second call": attempt(
            lambda: (softmax(x), _agree(softmax(x * 2), _softmax_of_rows(x * 2)))[1]
        ),
        "softmax.random state": attempt(_random_state_changes, softmax, x),
    }


def _waves(*shape, start=0):
    """Numbers between -2 and 2."""
    return 2 * waves(*shape, start=start, pace=1)


def _softmax_of_rows(x):
    rows = [softmax_by_hand(row) for row in x.reshape(-1, x.shape[-1]).tolist()]
    return torch.tensor(rows, dtype=x.dtype).reshape(x.shape)


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
