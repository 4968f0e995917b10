"""Tells known mistakes in problem 03 apart: an instrument of the grader's, not a lesson."""

import functools
import math

import torch

from grader.testing.compare import parameters
from grader.testing.diagnose import attempt
from worked_example import LAYERS, attention_by_hand, holding, waves


def probe(problem):
    """Ask a few small fixed questions; known mistakes answer them differently."""

    def shaped(*leading, n=3, m=4, d_k=5, d_v=2):
        return (
            wave(*leading, n, d_k),
            wave(*leading, m, d_k, start=0.4),
            wave(*leading, m, d_v, start=0.9),
        )

    def attend(*tensors):
        return problem.scaled_dot_product_attention(*tensors)

    def gradient(name):
        inputs = dict(zip("qkv", shaped(2), strict=True))
        inputs[name].requires_grad_()
        output = attend(*inputs.values())
        upstream = wave(*output.shape, start=0.7)
        return torch.autograd.grad(output, inputs[name], upstream, allow_unused=True)[0]

    def changed(number):
        tensors = shaped(2)
        before = tensors[number].clone()
        attend(*tensors)
        return not torch.equal(before, tensors[number])

    def far_apart():
        q, k = torch.zeros(4, 16), torch.zeros(3, 16)
        q[:, 0], q[:, 1] = torch.tensor([-4000, 0, 4000, 0]), torch.tensor([4, -2, 3, 8000])
        k[:, 0], k[:, 1] = 1, torch.arange(3)
        return attend(q.double(), k.double(), torch.eye(3, dtype=torch.float64))

    def precise(*tensors):
        output = attend(*tensors)
        batches = zip(*(tensor.tolist() for tensor in tensors), strict=True)
        by_hand = [attention_by_hand(*matrices) for matrices in batches]
        expected = torch.tensor(by_hand, dtype=torch.float64)
        return (output - expected).abs().max() < 1e-9

    def make(n_embd, bias=True, dtype=torch.float64):
        made = problem.ScaledAttention(n_embd, bias=bias)
        return holding(made, wave_weights(n_embd, bias), dtype)

    def module(*shape, bias=True, dtype=torch.float64):
        made = make(shape[-1], bias, dtype)
        return made(wave(*shape, start=0.2).to(dtype))

    def module_gradient(name):
        made, x = make(3), wave(2, 4, 3).requires_grad_()
        inputs = {"x": x, **parameters(made)}
        output = made(x)
        upstream = wave(2, 4, 3, start=0.7)
        return torch.autograd.grad(output, inputs[name], upstream, allow_unused=True)[0]

    def later_call():
        made = make(4)
        made(wave(2, 3, 4))
        return made(wave(2, 3, 4, start=0.5))

    def names(bias):
        found = parameters(problem.ScaledAttention(4, bias=bias))
        wanted = [f"{a}.{b}" for a in LAYERS for b in ("weight", "bias")]
        return torch.tensor([float(name in found) for name in wanted])

    def variance(*arguments, seed=1):
        return problem.dot_product_variance(*arguments, generator=seeded(seed))

    def doublings(value):
        return round(math.log2(value))

    @functools.cache
    def pairs_of_two():
        return [variance(16, 2, False, seed=seed) for seed in range(400)]

    def often_small():
        return sum(value < 0.8 for value in pairs_of_two()) > 44

    def scatters():
        values = [variance(64, 50, True, seed=seed) for seed in range(100)]
        mean = sum(values) / 100
        return sum((value - mean) ** 2 for value in values) / 100 > 0.01 * mean**2

    def alike(*, seeds=(1, 1), global_seeds=(1, 1), skip=0, given=True):
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

    return {
        "attention, 2-D": attempt(attend, *shaped()),
        "attention, 3-D": attempt(attend, *shaped(2)),
        "attention, 4-D": attempt(attend, *shaped(2, 3)),
        "attention, weights": attempt(
            attend, wave(4, 6), wave(3, 6, start=0.4), torch.eye(3, dtype=torch.float64)
        ),
        "attention, d_k of 11": attempt(attend, *shaped(2, d_k=11)),
        "attention, as many keys as numbers": attempt(attend, *shaped(2, n=5, m=5, d_v=5)),
        "attention, one in a batch": attempt(attend, *shaped(1)),
        "attention, one query": attempt(attend, *shaped(2, n=1)),
        "attention, one key": attempt(attend, *shaped(2, m=1)),
        "attention, rows far apart": attempt(far_apart),
        "attention, float32": attempt(attend, *(t.float() for t in shaped(2))),
        "attention, float64 is precise": attempt(precise, *shaped(2)),
        "attention, float64 is precise, d_k of 4": attempt(precise, *shaped(2, d_k=4)),
        "attention, gradient by q": attempt(gradient, "q"),
        "attention, gradient by k": attempt(gradient, "k"),
        "attention, gradient by v": attempt(gradient, "v"),
        "attention, q changed": attempt(changed, 0),
        "attention, k changed": attempt(changed, 1),
        "attention, v changed": attempt(changed, 2),
        "module, parameters with bias": attempt(names, True),
        "module, parameters without bias": attempt(names, False),
        "module, output": attempt(module, 2, 3, 4),
        "module, without bias": attempt(module, 2, 3, 4, bias=False),
        "module, another width": attempt(module, 2, 3, 7),
        "module, one in a batch": attempt(module, 1, 3, 4),
        "module, one position": attempt(module, 2, 1, 4),
        "module, float32": attempt(module, 2, 3, 4, dtype=torch.float32),
        "module, second call": attempt(later_call),
        "module, gradient by x": attempt(module_gradient, "x"),
        "module, gradient by query": attempt(module_gradient, "query.weight"),
        "module, gradient by key": attempt(module_gradient, "key.weight"),
        "module, gradient by value": attempt(module_gradient, "value.weight"),
        "variance, a float": attempt(lambda: isinstance(variance(5, 20, False), float)),
        "variance, doublings of 16": attempt(lambda: doublings(variance(16, 2000, False) / 16)),
        "variance, doublings of 1, scaled": attempt(lambda: doublings(variance(16, 2000, True))),
        "variance, two pairs": attempt(lambda: doublings(sum(pairs_of_two()) / 3200)),
        "variance, two pairs, often small": attempt(often_small),
        "variance, scatters from seed to seed": attempt(scatters),
        "variance, same seeds": attempt(alike, global_seeds=(1, 2)),
        "variance, other seeds": attempt(alike, seeds=(1, 2)),
        "variance, generator used before": attempt(alike, skip=5),
        "variance, global state moves": attempt(global_state_moves),
        "variance, no generator, same seeds": attempt(alike, given=False),
        "variance, no generator, other seeds": attempt(alike, given=False, global_seeds=(1, 2)),
    }


def wave(*shape, start=0.0):
    """Numbers between -1.5 and 1.5."""
    return 1.5 * waves(*shape, start=start)


def wave_weights(n_embd, bias=True):
    """Weights for the three layers, by name."""
    weights = {}
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = wave(n_embd, n_embd, start=1.3 * start)
        if bias:
            weights[f"{name}.bias"] = wave(n_embd, start=2.0 + start)
    return weights


def seeded(seed):
    """A generator of its own, with this seed."""
    return torch.Generator().manual_seed(seed)
