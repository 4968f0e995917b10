"""The questions by which a mistake in problem 03 is told. An instrument, not a lesson."""

import functools
import math

import torch

from grader.testing.compare import parameters, set_weights
from grader.testing.diagnosis.probe import Part

LAYERS = ("query", "key", "value")


def wave(*shape, start=0.0):
    """Numbers between -1.5 and 1.5 that need no chance."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64)
    return (1.5 * torch.sin(1.7 * steps + start)).reshape(shape)


def probe(problem):
    """Return the questions about each function and class."""
    return {
        "scaled_dot_product_attention": _about_attention(problem),
        "ScaledAttention": _about_module(problem),
        "dot_product_variance": _about_variance(problem),
    }


def _inputs(*leading, n=3, m=4, d_k=5, d_v=2):
    return {
        "q": wave(*leading, n, d_k),
        "k": wave(*leading, m, d_k, start=0.4),
        "v": wave(*leading, m, d_v, start=0.9),
    }


def _about_attention(problem):
    def attend(**given):
        return problem.scaled_dot_product_attention(*(t.clone() for t in given.values()))

    def alike(size, dimensions):
        shape = [size] * (dimensions - 2)
        return attend(**_inputs(*shape, n=size, m=size, d_k=size, d_v=size))

    def weights(n, m, d_k):
        q, k, _ = _inputs(n=n, m=m, d_k=d_k).values()
        return attend(q=q, k=k, v=torch.eye(m, dtype=torch.float64))

    def gradient(name):
        given = _inputs(2)
        given[name].requires_grad_()
        output = problem.scaled_dot_product_attention(*given.values())
        upstream = wave(*output.shape, start=0.7)
        return torch.autograd.grad(output, given[name], upstream, allow_unused=True)[0]

    def changes(name):
        given = _inputs(2)
        before = given[name].clone()
        problem.scaled_dot_product_attention(*given.values())
        return not torch.equal(before, given[name])

    def far_apart():
        q, k = torch.zeros(4, 16), torch.zeros(3, 16)
        q[:, 0], q[:, 1] = torch.tensor([-4000, 0, 4000, 0]), torch.tensor([4, -2, 3, 8000])
        k[:, 0], k[:, 1] = 1, torch.arange(3)
        return attend(q=q.double(), k=k.double(), v=torch.eye(3, dtype=torch.float64))

    def digits_lost():
        given = _inputs(2)
        fine, coarse = attend(**given), attend(**{n: t.float() for n, t in given.items()})
        return torch.equal(fine, fine.float().double()) or torch.equal(fine, coarse.double())

    return Part(
        main={
            "all of size 4": lambda: alike(4, 2),
            "all of size 3, a batch": lambda: alike(3, 3),
            "all of size 2, batches of batches": lambda: alike(2, 4),
            "2-D": lambda: attend(**_inputs()),
            "3-D": lambda: attend(**_inputs(2)),
            "4-D": lambda: attend(**_inputs(2, 3)),
            "weights": lambda: weights(4, 3, 6),
            "weights, as many queries as numbers": lambda: weights(5, 3, 5),
            "weights, as many keys as numbers": lambda: weights(3, 5, 5),
            "as long as wide": lambda: attend(**_inputs(2, n=5, m=5, d_v=5)),
            "d_k of 11": lambda: attend(**_inputs(2, d_k=11)),
        },
        edges={
            "one in a batch": lambda: attend(**_inputs(1)),
            "one query": lambda: attend(**_inputs(2, n=1)),
            "one key": lambda: attend(**_inputs(2, m=1)),
            "rows far apart": far_apart,
            "float32": lambda: attend(**{n: t.float() for n, t in _inputs(2).items()}),
            "digits are lost": digits_lost,
            "gradient by q": lambda: gradient("q"),
            "gradient by k": lambda: gradient("k"),
            "gradient by v": lambda: gradient("v"),
            "changes q": lambda: changes("q"),
            "changes k": lambda: changes("k"),
            "changes v": lambda: changes("v"),
        },
    )


def _wave_weights(n_embd, bias=True):
    weights = {}
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = wave(n_embd, n_embd, start=1.3 * start) / math.sqrt(n_embd / 4)
        if bias:
            weights[f"{name}.bias"] = wave(n_embd, start=2.0 + start)
    return weights


def _about_module(problem):
    def made(n_embd, bias=True, dtype=torch.float64):
        module = problem.ScaledAttention(n_embd, bias=bias).to(dtype)
        set_weights(module, _wave_weights(n_embd, bias))
        return module

    def output(*shape, bias=True, dtype=torch.float64):
        return made(shape[-1], bias, dtype)(wave(*shape, start=0.2).to(dtype))

    def gradient(name):
        module, x = made(3), wave(2, 4, 3).requires_grad_()
        leaves = {"x": x, **parameters(module)}
        upstream = wave(2, 4, 3, start=0.7)
        return torch.autograd.grad(module(x), leaves[name], upstream, allow_unused=True)[0]

    def second_call():
        module = made(4)
        module(wave(2, 3, 4))
        return module(wave(2, 3, 4, start=0.5))

    def names(bias):
        module = problem.ScaledAttention(4, bias=bias)
        found = {name for name, _ in module.named_parameters(remove_duplicate=False)}
        wanted = [f"{a}.{b}" for a in LAYERS for b in ("weight", "bias")]
        return torch.tensor([float(name in found) for name in wanted])

    def starts_alike():
        starts = []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            starts.append(problem.ScaledAttention(4).query.weight.detach().clone())
        return torch.equal(*starts)

    def changes():
        x = wave(2, 3, 4)
        made(4)(x)
        return not torch.equal(x, wave(2, 3, 4))

    return Part(
        main={
            "all of size 4": lambda: output(4, 4, 4),
            "all of size 3": lambda: output(3, 3, 3),
            "a batch of 2": lambda: output(2, 3, 4),
            "without bias": lambda: output(2, 3, 4, bias=False),
            "longer than wide": lambda: output(2, 6, 4),
            "another width": lambda: output(2, 3, 7),
        },
        edges={
            "parameters with bias": lambda: names(True),
            "parameters without bias": lambda: names(False),
            "default width": lambda: len(problem.ScaledAttention().query.weight),
            "starts alike": starts_alike,
            "one in a batch": lambda: output(1, 3, 4),
            "one position": lambda: output(2, 1, 4),
            "large tokens": lambda: made(4)(1e4 * wave(2, 3, 4)) / 1e4,
            "float32": lambda: output(2, 3, 4, dtype=torch.float32),
            "second call": second_call,
            "changes x": changes,
            "gradient by x": lambda: gradient("x"),
            "gradient by query": lambda: gradient("query.weight"),
            "gradient by key": lambda: gradient("key.weight"),
            "gradient by value": lambda: gradient("value.weight"),
        },
    )


def _about_variance(problem):
    def seeded(seed):
        return torch.Generator().manual_seed(seed)

    def variance(*arguments, seed=1):
        return problem.dot_product_variance(*arguments, generator=seeded(seed))

    def doublings(value):
        return round(math.log2(value))

    @functools.cache
    def pairs_of_two():
        return [variance(16, 2, False, seed=seed) for seed in range(300)]

    def scatters():
        values = [variance(64, 50, True, seed=seed) for seed in range(60)]
        mean = sum(values) / 60
        return sum((value - mean) ** 2 for value in values) / 60 > 0.01 * mean**2

    def same(*, seeds=(1, 1), global_seeds=(1, 1), skip=0, given=True):
        values = []
        for seed, global_seed, skipped in zip(seeds, global_seeds, (0, skip), strict=True):
            generator = seeded(seed)
            torch.rand(skipped, generator=generator)
            torch.default_generator.manual_seed(global_seed)
            generator = generator if given else None
            values.append(problem.dot_product_variance(6, 40, False, generator))
        return math.isclose(*values, rel_tol=1e-6)

    def global_state_moves():
        torch.default_generator.manual_seed(1)
        before = torch.get_rng_state()
        variance(6, 40, False)
        return not torch.equal(before, torch.get_rng_state())

    return Part(
        main={
            "doublings of 16": lambda: doublings(variance(16, 2000, False) / 16),
            "doublings of 1, scaled": lambda: doublings(variance(16, 2000, True)),
            "unscaled by scaled": lambda: variance(6, 40, False) / variance(6, 40, True),
            "two pairs": lambda: doublings(sum(pairs_of_two()) / 2400),
            "two pairs, often small": lambda: sum(v < 0.8 for v in pairs_of_two()) > 33,
            "scatters from seed to seed": scatters,
            "same seeds": lambda: same(global_seeds=(1, 2)),
            "other seeds": lambda: same(seeds=(1, 2)),
            "generator used before": lambda: same(skip=5),
            "no generator, same seeds": lambda: same(given=False),
            "no generator, other seeds": lambda: same(given=False, global_seeds=(1, 2)),
        },
        edges={
            "a float": lambda: isinstance(variance(5, 20, False), float),
            "global state moves": global_state_moves,
        },
    )
