"""The questions by which a mistake in problem 01 is told. An instrument, not a lesson."""

import math

import torch

from grader.testing.diagnosis.probe import Part
from worked_example import softmax_by_hand

INF = math.inf


def probe(problem):
    """Return the questions about each function."""
    return {
        "dot_product_similarity": _about_similarity(problem),
        "softmax": _about_softmax(problem),
    }


def _numbers(*shape, start=0.0):
    """Numbers between -1.5 and 1.5 that need no chance."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64)
    return (1.5 * torch.sin(1.7 * steps + 0.13 * steps**2 + start)).reshape(shape)


def _about_similarity(problem):
    def inputs(*leading, n=3, m=4, d=5):
        return _numbers(*leading, n, d), _numbers(*leading, m, d, start=0.4)

    def score(q, k):
        return problem.dot_product_similarity(q.clone(), k.clone())

    def alike(size, dimensions):
        return score(*inputs(*[size] * (dimensions - 2), n=size, m=size, d=size))

    def turned():
        """Tensors whose numbers lie in another order than they are read in."""
        q, k = inputs(2)
        return problem.dot_product_similarity(q.mT.contiguous().mT, k.mT.contiguous().mT)

    def digits_lost():
        q, k = inputs(2)
        fine, coarse = score(q, k), score(q.float(), k.float())
        return torch.equal(fine, fine.float().double()) or torch.equal(fine, coarse.double())

    def gradient(number):
        leaves = [tensor.requires_grad_() for tensor in inputs(2)]
        output = score(*leaves)
        return _gradient(output, leaves[number])

    def changes(number):
        given = inputs(2)
        before = given[number].clone()
        problem.dot_product_similarity(*given)
        return not torch.equal(before, given[number])

    def second_call():
        q, k = inputs(2)
        score(q, k)
        return score(q + 1, k * 1.5)

    return Part(
        main={
            "all of size 4": lambda: alike(4, 2),
            "all of size 3": lambda: alike(3, 2),
            "all of size 3, a batch": lambda: alike(3, 3),
            "all of size 2, batches of batches": lambda: alike(2, 4),
            "2-D": lambda: score(*inputs()),
            "3-D": lambda: score(*inputs(2)),
            "4-D": lambda: score(*inputs(2, 3)),
            "as many keys as queries": lambda: score(*inputs(2, n=4, d=3)),
            "as many queries as numbers": lambda: score(*inputs(2, n=5)),
            "d of 11": lambda: score(*inputs(n=4, m=3, d=11)),
        },
        edges={
            "one in a batch": lambda: score(*inputs(1)),
            "one query": lambda: score(*inputs(2, n=1)),
            "one key": lambda: score(*inputs(2, m=1)),
            "one number": lambda: score(*inputs(2, d=1)),
            "turned": turned,
            "large scores": lambda: score(*(30 * tensor for tensor in inputs(2))) / 900,
            "float32": lambda: score(*(tensor.float() for tensor in inputs(2))),
            "bfloat16": lambda: score(*(t.bfloat16().round() for t in inputs())),
            "digits are lost": digits_lost,
            "gradient by q": lambda: gradient(0),
            "gradient by k": lambda: gradient(1),
            "changes q": lambda: changes(0),
            "changes k": lambda: changes(1),
            "second call": second_call,
            "random state moves": lambda: _random_state_moves(score, *inputs()),
        },
    )


def _about_softmax(problem):
    def weigh(x, *dim):
        return problem.softmax(x.clone(), *dim)

    def asked(*shape, dim=None, start=0.2, dtype=torch.float64):
        x = 1.2 * _numbers(*shape, start=start).to(dtype)
        return weigh(x) if dim is None else weigh(x, dim)

    def turned():
        return problem.softmax(_numbers(3, 4, 2).transpose(0, 2), 1).double()

    def far(*, dim=-1):
        rows = [[1000, 1001, 999], [-1000, -1002, -1001], [0, -30, 1], [-3e300, 1e30, 3e300]]
        x = torch.tensor(rows, dtype=torch.float64)
        return (weigh(x) if dim == -1 else weigh(x.T, dim)).double()

    def row(*entries):
        return weigh(torch.tensor(entries, dtype=torch.float64)).double()

    def half(dtype):
        return weigh(torch.tensor([300.0, 0.0, -INF], dtype=dtype))

    def exact():
        x = _numbers(3, 5) * 6
        rows = torch.tensor([softmax_by_hand(r) for r in x.tolist()], dtype=torch.float64)
        return bool(((weigh(x) - rows).abs() <= 1e-12 * rows).all())

    def digits_lost():
        weights = weigh(_numbers(3, 5) * 4)
        return torch.equal(weights, weights.float().double())

    def sums_lack_something():
        return bool((1 - weigh(_numbers(8, 5)).sum(-1) > 3e-14).all())

    def exact_zeros():
        x = torch.tensor([[0.5, -INF, 1.5], [-INF, -1e30, -INF]])
        return (weigh(x) == 0).sum().item()

    def gradient(x, *dim, size=2.0**-20):
        x = x.clone().requires_grad_()
        found = _gradient(weigh(x, *dim), x, size)
        # If there is NaN among them, how torch happens to run the function decides where.
        return found if found.isfinite().all() else found * math.nan

    def grows():
        return torch.allclose(gradient(_numbers(3, 4)), gradient(_numbers(3, 4), size=2.0**20))

    def changes(x):
        given = x.clone()
        problem.softmax(given)
        return not torch.equal(given, x)

    def second_call():
        weigh(_numbers(3, 4))
        return weigh(_numbers(3, 4, start=0.6) * 2).double()

    beside_zero = torch.tensor([1.0, -2000.0, 2.0])
    rows = torch.tensor([[0.5, 2.0, -1.0], [1001.0, 1000.0, 999.0], [-900.0, -902.0, -901.0]])

    return Part(
        main={
            "all of size 4, dim 0": lambda: asked(4, 4, dim=0),
            "all of size 3, dim 0": lambda: asked(3, 3, 3, dim=0),
            "all of size 3, dim 1": lambda: asked(3, 3, 3, dim=1),
            "all of size 3, dim -2": lambda: asked(3, 3, 3, dim=-2),
            "all of size 3, no dim": lambda: asked(3, 3, 3),
            "all of size 2, dim 1": lambda: asked(2, 2, 2, 2, dim=1),
            "all of size 2, dim -3": lambda: asked(2, 2, 2, 2, dim=-3),
            "1-D": lambda: asked(5),
            "2-D": lambda: asked(3, 4),
            "2-D, dim 0": lambda: asked(3, 4, dim=0),
            "2-D, dim 1": lambda: asked(3, 4, dim=1),
            "3-D, dim 1": lambda: asked(2, 3, 4, dim=1),
            "3-D, dim -3": lambda: asked(2, 3, 4, dim=-3),
            "larger than 0": lambda: weigh(2.2 + _numbers(3, 4)),
            "smaller than 0": lambda: weigh(-2.2 + _numbers(3, 4)),
        },
        edges={
            "one column": lambda: asked(4, 1, dim=0).double(),
            "one entry": lambda: asked(1).double(),
            "one row": lambda: asked(1, 4).double(),
            "300 entries": lambda: asked(300).double(),
            "float64": lambda: asked(3, 4),
            "turned": turned,
            "near 30": lambda: row(28.0, 29.0, 30.5),
            "near -30": lambda: row(-28.0, -29.0, -30.5),
            "near 70": lambda: row(68.0, 69.0, 70.5),
            "near -70": lambda: row(-68.0, -69.0, -70.5),
            "near 1000": lambda: row(1000.0, 1001.0, 999.0),
            "near -1000": lambda: row(-1000.0, -1002.0, -1001.0),
            "one far above": lambda: row(0.0, 0.0, 0.0, 0.0, 4000.0),
            "one far below": lambda: row(2.0, 1.0, -4000.0),
            "rows far apart": far,
            "columns far apart": lambda: far(dim=0),
            "minus infinity": lambda: row(0.5, -INF, 1.5),
            "all minus infinity": lambda: row(-INF, -INF, -INF),
            "minus infinity beside a large negative": lambda: row(-INF, -1e30, -INF),
            "exact zeros": exact_zeros,
            "float32": lambda: asked(3, 4, dtype=torch.float32),
            "float16": lambda: half(torch.float16),
            "bfloat16": lambda: half(torch.bfloat16),
            "digits are lost": digits_lost,
            "exact": exact,
            "sums lack something": sums_lack_something,
            "gradient": lambda: gradient(_numbers(3, 4)),
            "gradient along dim 0": lambda: gradient(_numbers(3, 4), 0),
            "gradient far apart": lambda: gradient(rows.double()),
            "gradient beside a weight of 0": lambda: gradient(beside_zero.double()),
            "gradient grows": grows,
            "changes x": lambda: changes(_numbers(3, 4)),
            "changes x in float32": lambda: changes(_numbers(3, 4).float()),
            "changes minus infinity": lambda: changes(torch.tensor([[0.5, -INF, 1.5]])),
            "second call": second_call,
            "random state moves": lambda: _random_state_moves(weigh, _numbers(3, 4)),
        },
    )


def _gradient(output, leaf, size=2.0**-20):
    """The gradient of the output by one tensor, with uneven numbers from above.

    They are so small that nobody clips them, and are made up for afterwards.
    """
    upstream = size * _numbers(*output.shape, start=0.7)
    found = torch.autograd.grad(output, leaf, upstream, allow_unused=True)[0]
    return found if found is None else found / size


def _random_state_moves(function, *tensors):
    torch.default_generator.manual_seed(1)
    before = torch.get_rng_state()
    function(*tensors)
    return not torch.equal(torch.get_rng_state(), before)
