"""Define the questions of problem 03: calls whose answers identify mistakes."""

import functools
import itertools
import math

import torch

from grader.diagnose import edges
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.calls import answers
from shared.oracles.attention import attention_by_hand, self_attention_by_hand
from shared.three_layers import (
    about_parameters,
    filled,
    layer_weights,
    like_layer_weights,
)
from shared.worked_example import LAYERS


def probe(problem):
    """Return the questions about each function, the class, and some of their properties."""
    return {
        **about_attention(problem),
        "ScaledAttention": about_module(problem),
        "ScaledAttention: layers": about_parameters(
            lambda width, bias: problem.ScaledAttention(width, bias=bias),
            lambda: problem.ScaledAttention(),
        ),
        "dot_product_variance": about_variance(problem),
    }


def unless_left_to_chance(call, questions):
    """Return the questions. If the result of `call` is random, all their answers are True."""
    by_chance = functools.cache(lambda: edges.varies(call))
    return {name: lambda ask=ask: True if by_chance() else ask() for name, ask in questions.items()}


def inputs(*leading, n=3, m=4, d_k=5, d_v=2):
    """Return fixed queries, keys and values, by name."""
    return {
        "q": numbers(*leading, n, d_k),
        "k": numbers(*leading, m, d_k, start=0.4),
        "v": numbers(*leading, m, d_v, start=0.9),
    }


def about_attention(problem):
    """Return three groups of questions about scaled_dot_product_attention.

    In the second group, q, k and v are equal, so swapped arguments have no effect. In the third
    group, there is a single key, so wrong scores have no effect. Such mistakes cannot hide others
    in these groups.
    """

    def called(*given):
        return problem.scaled_dot_product_attention(*given)

    def attend(*leading, **sizes):
        return edges.first(called(*inputs(*leading, **sizes).values()))

    def of_the_same(*shape):
        return edges.first(called(*(1.3 * numbers(*shape, start=0.3) for _ in range(3))))

    def many():
        return attend(4, n=6, m=7)

    def weights(q, k):
        eye = torch.eye(len(k), dtype=torch.float64)
        return edges.first(called(torch.as_tensor(q).double(), torch.as_tensor(k).double(), eye))

    def twelve():
        """Return the attention weights of twelve keys; one of the keys is 0."""
        k = numbers(12, 6, start=0.4)
        k[3] = 0
        return weights(numbers(12, 6), k)

    def far_apart():
        q, k = torch.zeros(4, 16), torch.zeros(3, 16)
        q[:, 0], q[:, 1] = torch.tensor([-4000, 0, 4000, 0]), torch.tensor([4, -2, 3, 8000])
        k[:, 0], k[:, 1] = 1, torch.arange(3)
        return weights(q, k)

    def low_scores():
        return weights([[4.0, 1.0], [4.0, -2.0]], [[-500, 0.0], [-500, 0.3], [-500, 0.9]])

    def last_of_many():
        """Return whether the last of 700 values has an effect on the output."""
        given, others = inputs(n=1, m=700), inputs(n=1, m=700)
        others["v"][-1] += 1
        one, other = (edges.first(called(*each.values())) for each in (given, others))
        return not torch.equal(one, other)

    def digits_lost(d_k):
        right = attention_by_hand(*(each.tolist() for each in inputs(d_k=d_k).values()))
        return edges.loses_digits(attend(d_k=d_k), torch.tensor(right, dtype=torch.float64))

    of_all = Part(
        main=unless_left_to_chance(
            many,
            {
                "3x3x3": lambda: attend(3, n=3, m=3, d_k=3, d_v=3),
                "2x2x2x2": lambda: attend(2, 2, n=2, m=2, d_k=2, d_v=2),
                "2-D": lambda: attend(),
                "3-D": lambda: attend(2),
                "d_k = 11": lambda: attend(2, d_k=11),
            },
        ),
        edges=edges.of_function(called, inputs(2, 3))
        | unless_left_to_chance(
            many,
            {
                "twelve": twelve,
                "d_k = 3000": lambda: weights(numbers(4, 3000) / 40, numbers(5, 3000, start=0.4)),
                "exact zeros": lambda: (weights([[20.0]], [[0.0], [1.0]]) == 0).sum().item(),
            },
        )
        | {
            "what comes back": lambda: edges.kind(called(*inputs().values())),
            "one query": lambda: attend(2, n=1),
            "the last of many keys": last_of_many,
            "digits are lost": lambda: digits_lost(5),
            "digits are lost, d_k = 16": lambda: digits_lost(16),  # the root of 16 is exact
            "rows far apart": far_apart,
            "low scores": low_scores,
        },
    )
    of_like_tensors = {
        "3x4": lambda: of_the_same(3, 4),
        "3x3x3": lambda: of_the_same(3, 3, 3),
    }
    of_one_key = {  # and one query, so that most mistakes return the correct shape
        "2-D": lambda: attend(n=1, m=1),
        "3-D": lambda: attend(2, n=1, m=1),
    }
    return {
        "scaled_dot_product_attention": of_all,
        "scaled_dot_product_attention: like tensors": Part(
            main=unless_left_to_chance(many, of_like_tensors)
        ),
        "scaled_dot_product_attention: one key": Part(main=unless_left_to_chance(many, of_one_key)),
    }


def about_module(problem):
    """Return questions about ScaledAttention."""

    def weights_of(n_embd, bias=True):
        return layer_weights(n_embd, 3 / n_embd**0.5, bias)

    def made(n_embd, bias=True, dtype=torch.float64):
        module = problem.ScaledAttention(n_embd, bias=bias)
        return filled(module, weights_of(n_embd, bias), dtype)

    def output(*shape, bias=True):
        return edges.first(made(shape[-1], bias)(numbers(*shape, start=0.2)))

    def without_bias():
        """Return the output without biases; one token is 0."""
        x = numbers(2, 3, 5, start=0.2)
        x[0, 1] = 0
        return edges.first(made(5, False)(x))

    def layers_alike():
        """Return the output of a module with equal layers, so that swapping has no effect."""
        weights = like_layer_weights(5, 3 / 5**0.5)
        module = filled(problem.ScaledAttention(5), weights, torch.float64)
        return edges.first(module(numbers(2, 4, 5, start=0.2)))

    def many():
        return output(5, 6, 4)

    def digits_lost(n_embd):
        right = self_attention_by_hand(numbers(2, 3, n_embd, start=0.2), weights_of(n_embd))
        return edges.loses_digits(output(2, 3, n_embd), right)

    x = numbers(2, 4, 3)
    return Part(
        main=unless_left_to_chance(
            many,
            {
                "3x3x3": lambda: output(3, 3, 3),
                "no bias": without_bias,
                "2x6x5": lambda: output(2, 6, 5),
                "layers alike": layers_alike,
                "width 1": lambda: output(2, 6, 1),  # division by the width has no effect
            },
        ),
        edges=edges.of_module(
            lambda *dtype: made(3, True, *dtype),
            x,
            weights=tuple(f"{name}.weight" for name in LAYERS),
            large=1e4,
        )
        | unless_left_to_chance(
            many,
            {
                "one in a batch": lambda: output(1, 3, 4),
                "digits are lost": lambda: digits_lost(5),
                "digits are lost, width 4": lambda: digits_lost(4),
            },
        )
        | {"overwrites": lambda: edges.overwrites(made(3), x.clone(), 2 * x)},
    )


# dot_product_variance. Its result for a seed depends on the formula and on the order in which the
# numbers are drawn. Most code draws them in one of a few usual orders. For these, all results are
# known, so a result shows the formula. For other orders, averages over seeds show the formula.

# torch draws numbers in groups of 16. So one call and several calls for 16 numbers each draw the
# same numbers.
_PAIRS, _D_K = 7, 16
_ELSEWHERE = 1000  # the seed of the global generator is the given seed plus this number


def _draws(seed):
    """Yield the queries and keys for each usual order of drawing the numbers."""
    sizes = {"both": 2, "pairs": _PAIRS, "entries": _D_K}
    for dtype in (torch.float32, torch.float64):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(2 * _PAIRS * _D_K, generator=generator, dtype=dtype).double()
        for order in itertools.permutations(sizes):
            block = drawn.view([sizes[axis] for axis in order])
            yield block.permute([order.index(axis) for axis in sizes])


def _measures(q, k):
    """Return the results of correct and wrong formulas for these pairs, the correct one first."""
    products = q * k
    dots = products.sum(-1)
    variance = dots.var(correction=0)
    return torch.stack(
        [
            variance,
            variance.sqrt(),
            dots.square().mean(),
            products.var(correction=0),
            products.sum(0).var(correction=0),
            (q @ k.T).var(correction=0),
        ]
    )


@functools.cache
def _known():
    """Return a table for each usual order of drawing: a row per seed, a column per formula."""
    return [
        torch.stack([_measures(*drawn) for drawn in draws])
        for draws in zip(*(_draws(seed) for seed in (1, 2, 3)), strict=True)
    ]


def about_variance(problem):
    """Return questions about dot_product_variance."""

    def seeded(seed):
        return torch.Generator().manual_seed(seed)

    @functools.cache
    def variances(*arguments, seeds):
        """Return the results of dot_product_variance for these seeds."""
        calls = [(*arguments, seeded(seed)) for seed in seeds]
        elsewhere = [seed + _ELSEWHERE for seed in seeds]
        return [float(v) for v in answers(problem.dot_product_variance, calls, elsewhere)]

    def variance(*arguments, seed=1):
        return variances(*arguments, seeds=(seed,))[0]

    def repeats():
        torch.default_generator.manual_seed(1 + _ELSEWHERE)
        again = float(problem.dot_product_variance(6, 40, False, seeded(1)))
        return math.isclose(again, variance(6, 40, False), rel_tol=1e-5)

    def moving():
        if variance(6, 40, False) == variance(6, 40, False, seed=2):
            raise ArithmeticError("the result is always the same")

    def doublings(value):
        moving()
        return round(math.log2(value) + 0.05)

    def of_two_pairs():
        return doublings(sum(variances(16, 2, False, seeds=range(300))) / 2400)

    def hangs_on_one_vector():
        """Return whether the variance of 500 pairs still differs much between seeds."""
        values = variances(2, 500, False, seeds=range(12))
        mean = sum(values) / 12
        return sum((value - mean) ** 2 for value in values) / 12 > 0.1 * mean**2

    def by_scaled():
        if not repeats():
            raise ArithmeticError("results differ with the same seed")
        ratio = variance(6, 40, False) / variance(6, 40, True)
        if rounded(False) or rounded(True):
            return 6.0 ** (round(2 * math.log(ratio, 6)) / 2)
        return ratio

    @functools.cache
    def read_off():
        """Return the index of the matching formula in `_measures`, and result / formula."""
        moving()
        values = variances(_D_K, _PAIRS, False, seeds=(1, 2, 3))
        values = torch.tensor(values, dtype=torch.float64)
        for measures in _known():
            ratios = values[:, None] / measures
            close = (ratios / ratios[0] - 1).abs().amax(0) < 1e-4
            if close.any():
                measure = int(close.nonzero()[0])
                return measure, float(ratios[0, measure])
        if doublings(variance(16, 2000, False) / 16) == of_two_pairs() == 0:
            return 0, 1.0  # an unknown order, but correct on average
        raise LookupError("the order of the random numbers is unknown")

    def same(*, seeds=(1, 1), global_seeds=(1, 1), skip=0, given=True):
        values = []
        for seed, global_seed, skipped in zip(seeds, global_seeds, (0, skip), strict=True):
            generator = seeded(seed)
            torch.rand(skipped, generator=generator)
            torch.default_generator.manual_seed(global_seed)
            generator = generator if given else None
            values.append(float(problem.dot_product_variance(300, 40, False, generator)))
        return math.isclose(*values, rel_tol=1e-6)

    def rounded(scaled):
        values = variances(6, 40, scaled, seeds=(1, 2, 3))
        return all(value in (round(value, 4), float(f"{value:.6g}")) for value in values)

    def of_other_sizes():
        """Return whether the result stays the same for each of four increases of d_k or n_pairs."""
        sizes = [(5, 200), (6, 200), (1000, 200), (1001, 200), (3, 4999), (3, 5002), (3, 5003)]
        values = answers(problem.dot_product_variance, [(*s, True, seeded(1)) for s in sizes])
        pairs = [(0, 1), (2, 3), (4, 5), (5, 6)]
        return torch.tensor([math.isclose(values[i], values[j], rel_tol=1e-6) for i, j in pairs])

    return Part(
        main={
            "doublings of 16": lambda: doublings(variance(16, 2000, False) / 16),
            "by scaled": by_scaled,
            "measures": lambda: read_off()[0],
            "times": lambda: read_off()[1],
            "hangs on one vector": hangs_on_one_vector,
            "same seeds": lambda: same(global_seeds=(1, 2)),
            "other seeds": lambda: same(seeds=(1, 2)),
            "used before": lambda: same(skip=5),
            "global state moves": lambda: edges.moves_random_state(
                lambda: problem.dot_product_variance(6, 40, False, generator=seeded(1))
            ),
            "no generator, same seeds": lambda: same(given=False),
            "no generator, other seeds": lambda: same(given=False, global_seeds=(1, 2)),
        },
        edges={
            "what comes back": lambda: edges.kind(
                problem.dot_product_variance(5, 20, False, seeded(1))
            ),
            "of other sizes": of_other_sizes,
            "rounded, scaled": lambda: rounded(True),
        },
    )
