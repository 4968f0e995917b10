"""The questions by which a mistake in problem 02 is told. An instrument, not a lesson."""

import functools
import math

import torch

from grader.testing.compare import parameters, set_weights
from grader.testing.diagnosis.probe import Part
from shown_weights import about_layers, about_names_of_layers, names_of_layers
from worked_example import LAYERS


def probe(problem):
    """Return the questions about the class."""
    return {"SimpleAttention": _about_module(problem)}


def _numbers(*shape, start=0.0):
    """Numbers between -1.5 and 1.5 that need no chance."""
    steps = torch.arange(math.prod(shape), dtype=torch.float64)
    return (1.5 * torch.sin(1.7 * steps + 0.13 * steps**2 + start)).reshape(shape)


def _weights(n_embd, bias=True):
    """Weights that make scores of ordinary size, though they are not scaled."""
    weights, size = {}, 0.45 * (4 / n_embd)
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = size * _numbers(n_embd, n_embd, start=1.3 * start)
        if bias:
            weights[f"{name}.bias"] = 0.4 * _numbers(n_embd, start=2.0 + start)
    return weights


def _set_all(module, weights):
    """Set these weights by name, and what else there is to fixed numbers.

    A bias that isn't there stays away: what comes out without it tells as much.
    """
    found = parameters(module)
    bias_names = {f"{name}.bias" for name in LAYERS}
    set_weights(module, {n: w for n, w in weights.items() if n in found or n not in bias_names})
    given = {id(p) for n, p in found.items() if n in weights}  # be it under another name, too
    more = {n: p for n, p in found.items() if id(p) not in given}
    with torch.no_grad():
        for start, (name, parameter) in enumerate(more.items()):
            known = LAYERS.index(name.split(".")[0]) if name in bias_names else start
            parameter.copy_(_numbers(*parameter.shape, start=4.0 + known))


def _about_module(problem):
    def made(n_embd, bias=True, dtype=torch.float64, **changes):
        module = problem.SimpleAttention(n_embd, bias=bias).to(dtype)
        _set_all(module, _weights(n_embd, bias) | changes)
        return module.eval()

    @functools.cache
    def varies(training):
        module, x = made(4).train(training), _numbers(4, 4, 4)
        return not torch.equal(module(x.clone()), module(x.clone()))

    def settled():
        """Stop where the output is left to chance: it tells nothing then."""
        if varies(False):
            raise ValueError("left to chance")

    def output(*shape, bias=True, dtype=torch.float64):
        module, x = made(shape[-1], bias, dtype), _numbers(*shape, start=0.2).to(dtype)
        settled()
        return module(x)

    def turned():
        """Of a tensor whose numbers lie in another order than they are read in."""
        settled()
        return made(4)(_numbers(4, 3, 2, start=0.2).transpose(0, 2))

    def large(factor):
        settled()
        return made(4)(factor * _numbers(2, 3, 4)) / factor

    def one_far_above():
        """The scores of each row lie some thousands apart."""
        settled()
        return made(4, **{"query.weight": 3000 * _weights(4)["query.weight"]})(_numbers(2, 3, 4))

    def rows_far_apart():
        """The scores of a row lie near each other, but those of another far away."""
        x, weights = _numbers(2, 3, 4), _weights(4)
        x[..., 0] = torch.linspace(-2000, 2000, 6, dtype=x.dtype).reshape(2, 3)
        for name in LAYERS:
            weights[f"{name}.weight"][:, 0] = 0
        weights["query.weight"][0] = 0
        weights["query.weight"][0, 0] = 1
        weights["key.weight"][0] = 0
        weights["key.bias"][0] = 1
        settled()
        return made(4, **weights)(x)

    def large_values():
        settled()
        return made(4, **{"value.bias": torch.full((4,), 1e3)})(_numbers(2, 3, 4)) - 1e3

    def digits_lost():
        settled()
        module, x = made(4), _numbers(2, 3, 4)
        fine, coarse = module(x), made(4, dtype=torch.float32)(x.float())
        return torch.equal(fine, fine.float().double()) or torch.equal(fine, coarse.double())

    def constant_comes_back():
        """Whether the average of values that are all alike is that value, to twelve digits."""
        settled()
        zeros, value = torch.zeros(4, 4, dtype=torch.float64), torch.full((4,), 0.7).double()
        output = made(4, **{"value.weight": zeros, "value.bias": value})(_numbers(3, 5, 4))
        return bool(((output - value).abs() < 1e-12).all())

    def second_call(*first):
        settled()
        module = made(4)
        module(_numbers(*first, 4))
        return module(_numbers(2, 3, 4, start=0.5))

    def new_weights():
        settled()
        module = made(4)
        module(_numbers(2, 3, 4))
        set_weights(module, {"query.weight": 0.5 * _numbers(4, 4, start=0.8)})
        return module(_numbers(2, 3, 4))

    def long():
        """Whether a long sequence is right, its last output isn't 0, and its last token counts."""
        settled()
        x, weights = _numbers(1, 121, 4).repeat(2, 1, 1), _weights(4)
        x[1, -1] += 1
        q, k, v = (x @ weights[f"{n}.weight"].mT + weights[f"{n}.bias"] for n in LAYERS)
        output, expected = made(4)(x.clone()), (q @ k.mT).softmax(-1) @ v
        counts = not torch.allclose(output[0, 0], output[1, 0])
        return torch.tensor([torch.allclose(output, expected), output[:, -1].any(), counts])

    def gradient(name, size=2.0**-20):
        """A slope; what comes in is so small that nobody clips it, and is made up for."""
        settled()
        module, x = made(3), _numbers(2, 4, 3).requires_grad_()
        leaves = {"x": x, **parameters(module)}
        upstream = size * _numbers(2, 4, 3, start=0.7)
        found = torch.autograd.grad(module(x * 1), leaves[name], upstream, allow_unused=True)[0]
        return found if found is None else found / size

    def grows():
        return torch.allclose(gradient("x"), gradient("x", 2.0**20))

    def how_many_come_back():
        found = made(4)(_numbers(2, 3, 4))
        return len(found) if isinstance(found, tuple | list) else float(found is not None)

    def names(bias):
        return names_of_layers(problem.SimpleAttention(4, bias=bias))

    def sizes():
        module = problem.SimpleAttention(5)
        found = [getattr(module, name).weight for name in LAYERS]
        return torch.tensor([size for weight in found for size in weight.shape])

    def starts_alike():
        starts = []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            starts.append(problem.SimpleAttention(4).query.weight.detach().clone())
        return torch.equal(*starts)

    def apart():
        """Whether a module keeps its weights when another one of its size gets others."""
        one, other = made(4), made(4)
        x = _numbers(2, 3, 4)
        before = one(x)
        set_weights(other, {n: 2 * w.detach() for n, w in parameters(other).items()})
        other(x)
        return torch.equal(one(x), before)

    def changes(training):
        x = _numbers(2, 3, 4)
        made(4).train(training)(x)
        return not torch.equal(x, _numbers(2, 3, 4))

    def random_state_moves():
        module = made(4)
        torch.default_generator.manual_seed(1)
        before = torch.get_rng_state()
        module(_numbers(2, 3, 4))
        return not torch.equal(before, torch.get_rng_state())

    return Part(
        main={
            "all of size 4": lambda: output(4, 4, 4),
            "all of size 3": lambda: output(3, 3, 3),
            "a batch of 2": lambda: output(2, 3, 4),
            "a batch of 5": lambda: output(5, 3, 2),
            "one in a batch": lambda: output(1, 5, 3).reshape(5, 3),
            "without bias": lambda: output(2, 3, 4, bias=False),
            "longer than wide": lambda: output(2, 6, 4),
            "as long as wide": lambda: output(2, 5, 5),
            "as many as long": lambda: output(3, 3, 5),
            "varies in evaluation": lambda: varies(False),
            "how many come back": how_many_come_back,
            "sizes of the layers": sizes,
            "parameters with bias": lambda: names(True),
            "parameters without bias": lambda: names(False),
        },
        edges={
            "varies in training": lambda: varies(True),
            "default width": lambda: len(problem.SimpleAttention().query.weight),
            "default bias": lambda: problem.SimpleAttention(n_embd=4).query.bias is not None,
            "starts alike": starts_alike,
            "apart": apart,
            "one sequence": lambda: output(1, 3, 4),
            "one position": lambda: output(2, 1, 4),
            "one number": lambda: output(2, 3, 1),
            "turned": turned,
            "long": long,
            "large tokens": lambda: large(1e4),
            "tokens of some size": lambda: large(6),
            "one far above": one_far_above,
            "rows far apart": rows_far_apart,
            "large values": large_values,
            "float32": lambda: output(2, 3, 4, dtype=torch.float32),
            "digits are lost": digits_lost,
            "a constant comes back": constant_comes_back,
            "second call": lambda: second_call(2, 3),
            "second call, of another length": lambda: second_call(2, 2),
            "new weights": new_weights,
            "changes x": lambda: changes(False),
            "changes x in training": lambda: changes(True),
            "random state moves": random_state_moves,
            "gradient by x": lambda: gradient("x"),
            "gradient by query": lambda: gradient("query.weight"),
            "gradient by key": lambda: gradient("key.weight"),
            "gradient by value": lambda: gradient("value.weight"),
            "gradient grows": grows,
        },
        estimators=(
            about_layers(lambda width: problem.SimpleAttention(width), scaled=False),
            about_names_of_layers(lambda *sizes: problem.SimpleAttention(*sizes)),
        ),
    )
