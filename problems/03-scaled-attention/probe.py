"""The questions by which a mistake in problem 03 is told. An instrument, not a lesson."""

import functools
import itertools
import math

import torch

from grader.testing.compare import parameters, set_weights
from grader.testing.diagnosis.probe import Part
from shown_weights import (
    about_function,
    about_layers,
    about_names_of_layers,
    names_of_layers,
)
from worked_example import LAYERS, attention_by_hand, self_attention_by_hand, waves

KINDS = (float, int, torch.Tensor, type(None), tuple)


def wave(*shape, start=0.0):
    """Numbers between -1.5 and 1.5 that need no chance."""
    return 1.5 * waves(*shape, start=start)


def probe(problem):
    """Return the questions about each function and class."""
    return {
        "scaled_dot_product_attention": _about_attention(problem),
        "ScaledAttention": _about_module(problem),
        "dot_product_variance": _about_variance(problem),
    }


def kind(value):
    """What sort of thing came back, as a number."""
    return next((i for i, sort in enumerate(KINDS) if isinstance(value, sort)), len(KINDS))


def first(value):
    """The output, if it came back together with something else."""
    return value[0] if isinstance(value, tuple | list) and value else value


def steady(run):
    """Return a wrapper of questions. Code that rolls dice answers each of them with True."""

    @functools.cache
    def is_steady():
        try:
            first = run().nan_to_num()
            # Few numbers are dropped, so two runs agree by chance at times.
            return all(torch.equal(first, run().nan_to_num()) for _ in range(5))
        except Exception:
            return True  # what stops here may answer elsewhere

    def asked(question):
        return lambda: question() if is_steady() else True

    return asked


def blurred(run, inputs):
    """Whether a step so small that only float64 sees it gets lost."""

    def moved(size):
        return run(*(t + size * wave(*t.shape, start=i + 0.5) for i, t in enumerate(inputs)))

    one, two = moved(1e-9) - moved(0), moved(2e-9) - moved(0)
    return bool((two - 2 * one).norm() > 0.1 * two.norm()) or not two.any()


def coarse(actual, expected):
    """Whether an answer is right, but not to the last digits."""
    off = float((actual.detach() - expected).abs().max())
    return 1e-11 < off < 1e-5


def _inputs(*leading, n=3, m=4, d_k=5, d_v=2):
    return {
        "q": wave(*leading, n, d_k),
        "k": wave(*leading, m, d_k, start=0.4),
        "v": wave(*leading, m, d_v, start=0.9),
    }


def _slope(output, leaf, size=2.0**-20):
    """The gradient with uneven numbers from above; None if there is none, -1 where it fails.

    What comes in is so small that nobody clips it, and is made up for afterwards.
    """
    if not output.requires_grad:
        return None
    upstream = size * wave(*output.shape, start=0.7)
    try:
        found = torch.autograd.grad(output, leaf, upstream, allow_unused=True)[0]
    except RuntimeError:  # what it needs has been overwritten
        return -1
    return found if found is None else found / size


def _turned(tensor):
    """The same numbers, lying in memory in another order."""
    order = list(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def _about_attention(problem):
    def attend(**given):
        return first(problem.scaled_dot_product_attention(*(t.clone() for t in given.values())))

    def alike(size, dimensions):
        shape = [size] * (dimensions - 2)
        return attend(**_inputs(*shape, n=size, m=size, d_k=size, d_v=size))

    def weights(n, m, d_k):
        q, k, _ = _inputs(n=n, m=m, d_k=d_k).values()
        return attend(q=q, k=k, v=torch.eye(m, dtype=torch.float64))

    def in_graph(name):
        given = _inputs(2)
        given[name].requires_grad_()
        return given[name], first(problem.scaled_dot_product_attention(*given.values()))

    def gradient(name):
        return _slope(*reversed(in_graph(name)))

    def grows():
        large = _slope(*reversed(in_graph("q")), size=2.0**20)
        return torch.allclose(gradient("q"), large)

    def long():
        """Whether many queries and keys meet rightly, if not in sharpness; the last ones, too."""
        q, k, v = _inputs(n=151, m=149, d_k=3).values()
        expected, output = (q @ k.mT / math.sqrt(3)).softmax(-1) @ v, attend(q=q, k=k, v=v)
        v[-1] += 1
        counts = not torch.allclose(output, attend(q=q, k=k, v=v))
        behind = attend(q=q, k=k, v=torch.eye(149, dtype=torch.float64)).log()
        behind, scores = (t - t.mean(-1, keepdim=True) for t in (behind, q @ k.mT))
        sharper = torch.allclose(behind, scores * (behind[0, 0] / scores[0, 0]))
        return torch.tensor([torch.allclose(output, expected), output[-1].any(), counts, sharper])

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

    def shifted(by):
        q = torch.tensor([[4.0, 1.0], [4.0, -2.0]]).double()
        k = torch.tensor([[by, 0.0], [by, 0.3], [by, 0.9]]).double()
        return attend(q=q, k=k, v=torch.eye(3, dtype=torch.float64))

    def digits_lost(d_k=5):
        given = _inputs(d_k=d_k)
        expected = attention_by_hand(*(t.tolist() for t in given.values()))
        return coarse(attend(**given), torch.tensor(expected, dtype=torch.float64))

    def transposed():
        given = [_turned(t) for t in _inputs(2, 3).values()]
        return first(problem.scaled_dot_product_attention(*given))

    def steps_lost():
        return blurred(
            lambda *tensors: first(problem.scaled_dot_product_attention(*tensors)),
            _inputs().values(),
        )

    def random_state_moves():
        before = torch.get_rng_state()
        attend(**_inputs())
        return not torch.equal(before, torch.get_rng_state())

    ask = steady(lambda: attend(**_inputs(2)))
    main = {
        "5x5": lambda: alike(5, 2),
        "3x3x3": lambda: alike(3, 3),
        "2x2x2x2": lambda: alike(2, 4),
        "2-D": lambda: attend(**_inputs()),
        "3-D": lambda: attend(**_inputs(2)),
        "weights": lambda: weights(4, 3, 6),
        "n = d_k": lambda: weights(5, 3, 5),
        "m = d_k": lambda: weights(3, 5, 5),
        "d_k = 11": lambda: attend(**_inputs(2, d_k=11)),
    }
    return Part(
        main={name: ask(question) for name, question in main.items()},
        edges={
            "what comes back": lambda: kind(
                problem.scaled_dot_product_attention(*_inputs().values())
            ),
            "one in a batch": lambda: attend(**_inputs(1)),
            "one query": lambda: attend(**_inputs(2, n=1)),
            "one key": lambda: attend(**_inputs(2, m=1)),
            "rows far apart": far_apart,
            "high scores": lambda: shifted(500.0),
            "low scores": lambda: shifted(-500.0),
            "float32": lambda: attend(**{n: t.float() for n, t in _inputs(2).items()}),
            "transposed": transposed,
            "digits are lost": digits_lost,
            # There the root is a number that each dtype has.
            "digits are lost, d_k = 16": ask(lambda: digits_lost(16)),
            "steps are lost": steps_lost,
            "twelve": ask(lambda: weights(12, 12, 6)),
            "long": long,
            "random state moves": random_state_moves,
            "keeps the graph": lambda: in_graph("v")[1].requires_grad,
            "gradient by q": lambda: gradient("q"),
            "gradient by k": lambda: gradient("k"),
            "gradient by v": lambda: gradient("v"),
            "gradient grows": grows,
            "changes q": lambda: changes("q"),
            "changes k": lambda: changes("k"),
            "changes v": lambda: changes("v"),
        },
        estimators=(about_function(lambda *given: problem.scaled_dot_product_attention(*given)),),
    )


def _wave_weights(n_embd, bias=True):
    weights = {}
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = wave(n_embd, n_embd, start=1.3 * start) / math.sqrt(n_embd / 4)
        if bias:
            weights[f"{name}.bias"] = wave(n_embd, start=2.0 + start)
    return weights


def _hold(module, weights):
    """Give the module these weights, and any other parameter numbers that its shape tells."""
    found = parameters(module)
    # A bias that isn't there counts as 0, so that what else is wrong can still be seen.
    set_weights(module, {n: w for n, w in weights.items() if n in found or n.endswith("weight")})
    held = {id(found[name]) for name in found.keys() & weights.keys()}  # under any of their names
    others = {name: p for name, p in found.items() if id(p) not in held and p.dim()}
    set_weights(module, {name: wave(*p.shape, start=0.3) for name, p in others.items()})
    return module


def _about_module(problem):
    def made(n_embd, bias=True, dtype=torch.float64):
        module = problem.ScaledAttention(n_embd, bias=bias).to(dtype)
        return _hold(module, _wave_weights(n_embd, bias))

    def output(*shape, bias=True, dtype=torch.float64):
        return first(made(shape[-1], bias, dtype)(wave(*shape, start=0.2).to(dtype)))

    def gradient(name):
        module, x = made(3), wave(2, 4, 3).requires_grad_()
        leaves = {"x": x, **parameters(module)}
        return _slope(first(module(x)), leaves[name])

    def second_call():
        module = made(4)
        module(wave(2, 3, 4))
        return first(module(wave(2, 3, 4, start=0.5)))

    def names(bias):
        return names_of_layers(problem.ScaledAttention(4, bias=bias))

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

    def changes_weights():
        module = made(4)
        module(wave(2, 3, 4))
        found = parameters(module)
        return any(not torch.equal(found[n], w) for n, w in _wave_weights(4).items() if n in found)

    def digits_lost(n_embd=5):
        x = wave(2, 3, n_embd, start=0.2)
        return coarse(output(2, 3, n_embd), self_attention_by_hand(x, _wave_weights(n_embd)))

    def transposed():
        return first(made(4)(_turned(wave(2, 3, 4, start=0.2))))

    def restless_in_eval():
        module, x = made(4).eval(), wave(2, 3, 4)
        return not torch.equal(first(module(x)), first(module(x)))

    ask = steady(lambda: output(2, 3, 4))
    main = {
        "3x3x3": lambda: output(3, 3, 3),
        "2x3x5": lambda: output(2, 3, 5),
        "no bias": lambda: output(2, 3, 5, bias=False),
        "2x6x5": lambda: output(2, 6, 5),
        "2x3x7": lambda: output(2, 3, 7),
    }
    return Part(
        main={name: ask(question) for name, question in main.items()},
        edges={
            "what comes back": lambda: kind(made(4)(wave(2, 3, 4))),
            "parameters with bias": lambda: names(True),
            "parameters without bias": lambda: names(False),
            "default width": lambda: len(problem.ScaledAttention().query.weight),
            "starts alike": starts_alike,
            "one in a batch": lambda: output(1, 3, 4),
            "one position": lambda: output(2, 1, 4),
            "large tokens": lambda: first(made(4)(1e4 * wave(2, 3, 4))) / 1e4,
            "float32": lambda: output(2, 3, 4, dtype=torch.float32),
            "transposed": transposed,
            "digits are lost": digits_lost,
            "digits are lost, width 4": ask(lambda: digits_lost(4)),
            "steps are lost": lambda: blurred(lambda x: first(made(4)(x)), [wave(2, 3, 4)]),
            "second call": second_call,
            "changes in eval": restless_in_eval,
            "changes x": changes,
            "changes weights": changes_weights,
            "keeps the graph": lambda: first(made(4)(wave(2, 3, 4))).requires_grad,
            "gradient by x": lambda: gradient("x"),
            "gradient by query": lambda: gradient("query.weight"),
            "gradient by key": lambda: gradient("key.weight"),
            "gradient by value": lambda: gradient("value.weight"),
        },
        estimators=(
            about_layers(lambda width: problem.ScaledAttention(width)),
            about_names_of_layers(lambda *sizes: problem.ScaledAttention(*sizes)),
        ),
    )


# The experiment. What it returns is chance, but the ways to draw are few: for most of them the
# very numbers are known, and what was made of them can be read off. The others show in averages.

_PAIRS, _D_K = 7, 16  # 16 at a time is how torch draws, so few draws or one make no difference
_ELSEWHERE = 1000  # from seed to seed, the global generator's lies this far from that given


def _numbers(seed, normal, dtype):
    draw = torch.randn if normal else torch.rand
    generator = torch.Generator().manual_seed(seed)
    return draw(2 * _PAIRS * _D_K, generator=generator, dtype=dtype).double()


def _draws(seed):
    """Yield pairs of queries and keys, and the kind of draw: 0 is normal, others are wrong."""
    sizes = {"both": 2, "pairs": _PAIRS, "entries": _D_K}
    half = _PAIRS * _D_K
    for dtype in (torch.float32, torch.float64):
        given, globally = (_numbers(s, True, dtype) for s in (seed, seed + _ELSEWHERE))
        even = _numbers(seed, False, dtype)
        mixed = [
            torch.cat([given[:half], globally[:half]]),
            torch.cat([globally[:half], given[:half]]),
        ]
        for order in itertools.permutations(sizes):
            for number, numbers in enumerate((given, even, 2 * even - 1, even - 0.5)):
                block = numbers.view([sizes[axis] for axis in order])
                block = block.permute([order.index(axis) for axis in sizes])
                yield block[0], block[1], number
            if order[0] == "both":
                for numbers in (*mixed, globally):
                    block = numbers.view([sizes[axis] for axis in order])
                    yield *block.permute([order.index(axis) for axis in sizes]), 0
                same = given[:half].view([sizes[axis] for axis in order[1:]])
                same = same if order[1] == "pairs" else same.T
                yield same, same, 4


def _measures(q, k):
    """What may be made of the pairs: first of all their variance."""
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
    """For each way to draw, its kind and what may be made of it for each seed."""
    return [
        (draws[0][2], torch.stack([_measures(q, k) for q, k, _ in draws]))
        for draws in zip(*(_draws(seed) for seed in (1, 2, 3)), strict=True)
    ]


def _about_variance(problem):
    def seeded(seed):
        return torch.Generator().manual_seed(seed)

    @functools.cache
    def variance(*arguments, seed=1):
        torch.default_generator.manual_seed(seed + _ELSEWHERE)
        return float(problem.dot_product_variance(*arguments, generator=seeded(seed)))

    def repeats():
        torch.default_generator.manual_seed(1 + _ELSEWHERE)
        again = float(problem.dot_product_variance(6, 40, False, seeded(1)))
        return math.isclose(again, variance(6, 40, False), rel_tol=1e-5)

    def moving():
        if variance(6, 40, False) == variance(6, 40, False, seed=2):
            raise ArithmeticError("it is always the same number")

    def doublings(value):
        moving()
        return round(math.log2(value) + 0.05)

    def of_two():
        return [variance(16, 2, False, seed=seed) for seed in range(300)]

    def mean_of_two():
        return doublings(sum(of_two()) / 2400)

    def often_small():
        moving()
        return sum(v < 0.8 for v in of_two()) > 33

    def scatters():
        values = [variance(64, 50, True, seed=seed) for seed in range(60)]
        mean = sum(values) / 60
        return sum((value - mean) ** 2 for value in values) / 60 > 0.01 * mean**2

    def by_scaled():
        if not repeats():
            raise ArithmeticError("the same seeds give other numbers")
        ratio = variance(6, 40, False) / variance(6, 40, True)
        if rounded(False) or rounded(True):
            return 6.0 ** (round(2 * math.log(ratio, 6)) / 2)
        return ratio

    @functools.cache
    def read_off():
        """Kind of draw, what is measured, and how many times too large it comes back."""
        moving()
        values = [variance(_D_K, _PAIRS, False, seed=seed) for seed in (1, 2, 3)]
        values = torch.tensor(values, dtype=torch.float64)
        for kind_of_draw, measures in _known():
            ratios = values[:, None] / measures
            close = (ratios / ratios[0] - 1).abs().amax(0) < 1e-4
            if close.any():
                measure = int(close.nonzero()[0])
                return kind_of_draw, measure, float(ratios[0, measure])
        usual = doublings(variance(16, 2000, False) / 16) == 0
        if usual and mean_of_two() == 0 and often_small():
            return 0, 0, 1.0  # drawn in a way of its own, and right as far as averages tell
        raise LookupError("nobody knows how these numbers were drawn")

    def same(*, seeds=(1, 1), global_seeds=(1, 1), skip=0, given=True):
        values = []
        for seed, global_seed, skipped in zip(seeds, global_seeds, (0, skip), strict=True):
            generator = seeded(seed)
            torch.rand(skipped, generator=generator)
            torch.default_generator.manual_seed(global_seed)
            generator = generator if given else None
            values.append(float(problem.dot_product_variance(300, 40, False, generator)))
        return math.isclose(*values, rel_tol=1e-6)

    def global_state_moves():
        torch.default_generator.manual_seed(1)
        before = torch.get_rng_state()
        problem.dot_product_variance(6, 40, False, generator=seeded(1))
        return not torch.equal(before, torch.get_rng_state())

    def rounded(scaled):
        values = [variance(6, 40, scaled, seed=seed) for seed in (1, 2, 3)]
        return all(value == round(value, 4) for value in values)

    return Part(
        main={
            "doublings of 16": lambda: doublings(variance(16, 2000, False) / 16),
            "doublings of 1": lambda: doublings(variance(16, 2000, True)),
            "by scaled": by_scaled,
            "draws": lambda: read_off()[0],
            "measures": lambda: read_off()[1],
            "times": lambda: read_off()[2],
            "two pairs": mean_of_two,
            "often small": often_small,
            "scatters": scatters,
            "same seeds": lambda: same(global_seeds=(1, 2)),
            "other seeds": lambda: same(seeds=(1, 2)),
            "used before": lambda: same(skip=5),
            "global state moves": global_state_moves,
            "no generator, same seeds": lambda: same(given=False),
            "no generator, other seeds": lambda: same(given=False, global_seeds=(1, 2)),
        },
        edges={
            "what comes back": lambda: kind(problem.dot_product_variance(5, 20, False, seeded(1))),
            "rounded": lambda: rounded(False),
            "rounded, scaled": lambda: rounded(True),
        },
    )
