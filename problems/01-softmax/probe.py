"""Define the questions of problem 01: calls whose answers identify mistakes."""

import math

import torch

from grader.diagnose import edges
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from shared.oracles.attention import softmax_by_hand

INF = math.inf


def probe(problem):
    """Return the questions about each function."""
    return {
        "dot_product_similarity": about_similarity(problem),
        "softmax": about_softmax(problem),
    }


def inputs(*leading, n=3, m=4, d=5):
    """Return fixed queries and keys, by name."""
    return {"q": numbers(*leading, n, d), "k": numbers(*leading, m, d, start=0.4)}


def about_similarity(problem):
    """Return questions about dot_product_similarity."""

    def score(*leading, **sizes):
        return problem.dot_product_similarity(*inputs(*leading, **sizes).values())

    return Part(
        main={
            "all of size 3, a batch": lambda: score(3, n=3, m=3, d=3),
            "all of size 2, batches of batches": lambda: score(2, 2, n=2, m=2, d=2),
            "2-D": lambda: score(),
            "4-D": lambda: score(2, 3),
            "as many queries as numbers": lambda: score(2, n=5),
            "d of 11": lambda: score(n=4, m=3, d=11),
        },
        edges=edges.of_function(
            lambda *given: problem.dot_product_similarity(*given), inputs(2), large=30
        )
        | {
            "one in a batch": lambda: score(1),
            "one query": lambda: score(2, n=1),
            "turned, 4-D": lambda: problem.dot_product_similarity(
                *map(edges.turned, inputs(2, 3).values())
            ),
        },
    )


def about_softmax(problem):
    """Return questions about softmax."""

    def weigh(x, *dim):
        return problem.softmax(x.clone(), *dim)

    def asked(*shape, dim=()):
        return weigh(1.2 * numbers(*shape, start=0.2), *dim)

    def row(*entries, dtype=torch.float64):
        return weigh(torch.tensor(entries, dtype=dtype))

    def near(size):
        return row(size - 2, size - 1, size + 0.5).double()

    def beyond_float32():
        rows = [[0.0, -1.0, -2.0, -3.0, -1.0], [85.0, 84.0, 83.0, 82.0, 90.0]]
        return weigh(torch.tensor(rows)).double()

    def exact():
        x = 6 * numbers(3, 5)
        rows = torch.tensor([softmax_by_hand(each) for each in x.tolist()], dtype=torch.float64)
        return bool(((weigh(x) - rows).abs() <= 1e-12 * rows).all())

    def sums_lack_something():
        return bool((1 - weigh(numbers(8, 5)).sum(-1) > 3e-14).all())

    def exact_zeros():
        x = torch.tensor([[0.5, -INF, 1.5], [-INF, -1e30, -INF], [20.0, 0.0, 1.0]])
        return (weigh(x) == 0).sum().item()

    def gradient(x, *dim):
        x = torch.tensor(x).double() if isinstance(x, list) else x
        x.requires_grad_()
        return edges.slope(weigh(x, *dim), x)

    def changes():
        given = numbers(3, 4).float()
        problem.softmax(given)
        return not torch.equal(given, numbers(3, 4).float())

    def asks_for_gradients():
        x = numbers(3, 4)
        problem.softmax(x)
        return x.requires_grad

    rows = [[0.5, 2.0, -1.0], [1001.0, 1000.0, 999.0], [-900.0, -902.0, -901.0]]
    return Part(
        main={
            "all of size 4, dim 0": lambda: asked(4, 4, dim=[0]),
            "all of size 3, dim 1": lambda: asked(3, 3, 3, dim=[1]),
            "all of size 3, no dim": lambda: asked(3, 3, 3),
            "1-D": lambda: asked(5),
            "3-D, dim 1": lambda: asked(2, 3, 4, dim=[1]),
            "3-D, dim -3": lambda: asked(2, 3, 4, dim=[-3]),
        },
        edges=edges.of_function(lambda x: problem.softmax(x), {"x": 1.5 * numbers(3, 4)})
        | {
            "one row": lambda: asked(1, 4).double(),
            "turned, dim 1": lambda: weigh(edges.turned(numbers(2, 4, 3)), 1).double(),
            "near 1000": lambda: near(1000.0),
            "near -1000": lambda: near(-1000.0),
            "90 in float32, in the last place": beyond_float32,
            "one far above": lambda: row(0.0, 0.0, 0.0, 0.0, 4000.0).double(),
            "minus infinity": lambda: row(0.5, -INF, 1.5).double(),
            "all minus infinity": lambda: row(-INF, -INF, -INF).double(),
            "exact zeros": exact_zeros,
            "float16": lambda: row(300.0, 0.0, -INF, dtype=torch.float16),
            "exact": exact,
            "sums lack something": sums_lack_something,
            "gradient along dim 0": lambda: gradient(numbers(3, 4), 0),
            "gradient far apart": lambda: gradient(rows),
            "gradient beside a weight of 0": lambda: gradient([1.0, -2000.0, 2.0]),
            "changes x in float32": changes,
            "asks for gradients": asks_for_gradients,
        },
    )
