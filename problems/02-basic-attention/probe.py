"""Tells known mistakes in problem 02 apart: an instrument of the grader's, not a lesson."""

import math

import torch
from grader.testing.diagnose import attempt

from grader.testing.compare import gradients, parameters, set_weights
from worked_example import LAYERS, holding
from worked_example import waves as same_waves


def probe(problem):
    """Ask a few small fixed questions; known mistakes answer them differently."""
    x, other = waves(2, 3, 4), waves(2, 3, 4, start=7)

    def module(n_embd=4, bias=True, dtype=torch.float64, **changes):
        weights = {}
        for i, name in enumerate(LAYERS):
            weights[f"{name}.weight"] = waves(n_embd, n_embd, start=20 + i).to(dtype)
            if bias:
                weights[f"{name}.bias"] = waves(n_embd, start=30 + i).to(dtype)
        weights.update(changes)
        made = problem.SimpleAttention(n_embd, bias=bias)
        return holding(made, weights, dtype).eval()

    def varies(mode):
        made = module().train(mode)
        outputs = [made(x.clone()) for _ in range(20)]
        return any(bool((o - outputs[0]).abs().max() > 1e-6) for o in outputs)

    varies_in_evaluation = attempt(varies, False)
    left_to_chance = varies_in_evaluation == attempt(lambda: True)

    def output(made, x):
        """The output; NaN where it is left to chance."""
        return torch.tensor(math.nan) if left_to_chance else made(x.clone())

    def returned():
        value = module()(x.clone())
        return isinstance(value, torch.Tensor) or value

    def sizes(*arguments):
        made = problem.SimpleAttention(*arguments)
        layers = [getattr(made, name) for name in LAYERS]
        return torch.tensor([p.numel() for layer in layers for p in layer.parameters()])

    def output_of_rows_far_apart():
        far = x.clone()
        far[..., 0] = torch.linspace(-2000, 2000, 6, dtype=x.dtype).reshape(2, 3)
        start = torch.eye(4, dtype=x.dtype)[0]
        inner = waves(4, 4, start=40) * (1 - start)
        changes = {"query.weight": inner * (1 - start)[:, None] + torch.outer(start, start)}
        changes["query.bias"] = waves(4, start=41) * (1 - start)
        changes["key.weight"] = inner.T.flip(0) * (1 - start) * (1 - start)[:, None]
        changes["key.bias"] = start
        changes["value.weight"] = inner
        return output(module(**changes), far)

    def output_beside_large_values():
        large = torch.full((4,), 1e8, dtype=torch.float64)
        return output(module(**{"value.bias": large}), x) - 1e8

    def output_after_another(first, then):
        made = module()
        made(first.clone())
        return output(made, then)

    def output_after_new_weights():
        made, query = module(), waves(4, 4, start=50)
        made(x.clone())
        set_weights(made, {"query.weight": query})
        return output(made, x)

    def changes_x():
        mine = x.clone()
        module()(mine)
        return not torch.equal(mine, x)

    def gradient(name):
        made, mine = module(), x.clone().requires_grad_()
        by = mine if name == "x" else parameters(made)[name]
        upstream = waves(2, 3, 4, start=60)
        return gradients(output(made, mine), {name: by}, upstream, "attention(x)")[name]

    def seed_makes_no_difference():
        starts = []
        for seed in (1, 2):
            torch.default_generator.manual_seed(seed)
            starts.append(problem.SimpleAttention(4).query.weight.detach().clone())
        return torch.equal(*starts)

    def moves_random_state():
        made, state = module(), torch.get_rng_state()
        made(x.clone())
        return not torch.equal(state, torch.get_rng_state())

    return {
        "attention.numbers in its layers": attempt(sizes, 4),
        "attention.numbers in its layers by default": attempt(sizes),
        "attention.numbers in its layers without bias": attempt(sizes, 4, False),
        "attention.returns a tensor": attempt(returned),
        "attention.output": attempt(lambda: output(module(), x)),
        "attention.output without bias": attempt(lambda: output(module(bias=False), x)),
        "attention.output in float32": attempt(
            lambda: output(module(dtype=torch.float32), x.float())
        ),
        "attention.output of width 3": attempt(lambda: output(module(3), x[..., :3])),
        "attention.output of one sequence": attempt(lambda: output(module(), x[:1])),
        "attention.output of one position": attempt(lambda: output(module(), x[:, :1])),
        "attention.output of twelve positions": attempt(
            lambda: output(module(), waves(1, 12, 4, start=3))
        ),
        "attention.output of rows far apart": attempt(output_of_rows_far_apart),
        "attention.output of large x": attempt(lambda: output(module(), 50 * x)),
        "attention.output of one large position": attempt(lambda: output(module(), 50 * x[:1, :1])),
        "attention.output beside large values": attempt(output_beside_large_values),
        "attention.output after another x": attempt(output_after_another, other, x),
        "attention.output after a shorter x": attempt(output_after_another, other[:, :2], x),
        "attention.output after new weights": attempt(output_after_new_weights),
        "attention.x is changed": attempt(changes_x),
        "attention.varies in training": attempt(varies, True),
        "attention.varies in evaluation": varies_in_evaluation,
        "attention.gradient of x": attempt(gradient, "x"),
        "attention.gradient of query.weight": attempt(gradient, "query.weight"),
        "attention.gradient of key.weight": attempt(gradient, "key.weight"),
        "attention.gradient of value.weight": attempt(gradient, "value.weight"),
        "attention.seed makes no difference": attempt(seed_makes_no_difference),
        "attention.moves the random state": attempt(moves_random_state),
    }


def waves(*shape, start=0):
    """Numbers between -1 and 1; those of another start go at another pace."""
    return same_waves(*shape, start=start, pace=1.7 * (1 + 0.01 * start))
