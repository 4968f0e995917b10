"""The questions by which a mistake in problem 02 is told. An instrument, not a lesson."""

import functools

import torch

from grader.diagnose import edges
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.compare import parameters, set_weights
from shared.three_layers import (
    about_parameters,
    filled,
    layer_weights,
    like_layer_weights,
    overwrites,
)
from shared.worked_example import LAYERS


def probe(problem):
    """Return the questions about the class, and about what it is made of."""
    return about_module(problem) | {
        "SimpleAttention: layers": about_parameters(
            lambda width, bias: problem.SimpleAttention(width, bias=bias),
            lambda: problem.SimpleAttention(),
        ),
    }


def about_module(problem):
    """Questions about what comes out: of all, and of what some mistakes make no difference to.

    Where the three layers are alike, it is the same which is which; and a token by itself has the
    whole weight, whatever is made of scores. So of two mistakes one can be told from the other.
    """

    def made(n_embd, bias=True, dtype=torch.float64, **changes):
        # Weights that make scores of ordinary size, though they are not scaled.
        weights = layer_weights(n_embd, 1.8 / n_embd, bias) | changes
        return filled(problem.SimpleAttention(n_embd, bias=bias), weights, dtype).eval()

    def of_many(mode):
        return made(4).train(mode)(numbers(5, 6, 4))

    @functools.cache
    def varies():
        return edges.varies(lambda: of_many(False))

    def varies_from_call_to_call():
        module = made(4)
        return edges.varies(lambda: module(numbers(5, 6, 4)))

    def settled(module):
        """Stop where the output is left to chance: it tells nothing then."""
        if varies():
            raise ValueError("left to chance")
        return module

    def output(*shape, bias=True):
        return settled(made(shape[-1], bias))(numbers(*shape, start=0.2))

    def without_bias():
        """Of tokens among which one occurs twice and one is 0."""
        x = numbers(2, 4, 4, start=0.2)
        x[0, 1], x[1, 2] = x[0, 0], 0
        return settled(made(4, False))(x)

    def of_like_layers(*shape):
        alike = like_layer_weights(shape[-1], 1.8 / shape[-1])
        return settled(made(shape[-1], **alike))(numbers(*shape, start=0.2))

    def one_far_above():
        """The scores of each row lie some thousands apart."""
        query = 3000 * layer_weights(4, 0.45)["query.weight"]
        return settled(made(4, **{"query.weight": query}))(numbers(2, 3, 4))

    def rows_far_apart():
        """The scores of a row lie near each other, but those of another far away."""
        x, weights = numbers(2, 3, 4), layer_weights(4, 0.45)
        x[..., 0] = torch.linspace(-2000, 2000, 6, dtype=x.dtype).reshape(2, 3)
        for name in LAYERS:
            weights[f"{name}.weight"][:, 0] = 0
        weights["query.weight"][0] = torch.tensor([1, 0, 0, 0])
        weights["key.weight"][0] = 0
        weights["key.bias"][0] = 1
        return settled(made(4, **weights))(x)

    def all_high():
        """The scores of all rows lie near each other, and far above 0."""
        weights = layer_weights(4, 0.45)
        weights["query.weight"] = 0 * weights["query.weight"]
        weights["query.bias"] = torch.tensor([1.0, 0, 0, 0])
        weights["key.bias"] = torch.tensor([2000.0, 0, 0, 0])
        return settled(made(4, **weights))(numbers(2, 3, 4))

    def large_values():
        value = {"value.bias": torch.full((4,), 1e3)}
        return settled(made(4, **value))(numbers(2, 3, 4)) - 1e3

    def constant_comes_back():
        """Whether the average of values that are all alike is that value, to twelve digits."""
        zeros, value = torch.zeros(4, 4, dtype=torch.float64), torch.full((4,), 0.7).double()
        module = settled(made(4, **{"value.weight": zeros, "value.bias": value}))
        return bool(((module(numbers(3, 5, 4)) - value).abs() < 1e-12).all())

    def new_weights():
        module = settled(made(4))
        module(numbers(2, 3, 4))
        set_weights(module, {"query.weight": 0.5 * numbers(4, 4, start=0.8)})
        return module(numbers(2, 3, 4))

    @torch.no_grad()
    def last_of_many():
        """Whether the last of many tokens is attended to."""
        module, x = settled(made(2)), numbers(1, 260, 2)
        others = torch.cat([x[:, :-1], x[:, -1:] + 1], dim=1)
        first = module(x)[:, :1].clone()
        return not torch.equal(first, module(others)[:, :1])

    def how_many_come_back():
        found = made(4)(numbers(2, 3, 4))
        return len(found) if isinstance(found, tuple | list) else float(found is not None)

    def apart():
        """Whether a module keeps its weights when another one of its size gets others."""
        one, other, x = made(4), made(4), numbers(2, 3, 4)
        before = one(x)
        set_weights(other, {n: 2 * w.detach() for n, w in parameters(other).items()})
        other(x)
        return torch.equal(one(x), before)

    forward = Part(
        main={
            "all of size 4": lambda: output(4, 4, 4),
            "all of size 3": lambda: output(3, 3, 3),
            "a batch of 2": lambda: output(2, 3, 4),
            "a batch of 5": lambda: output(5, 3, 2),
            "one in a batch": lambda: output(1, 5, 3).reshape(5, 3),
            "without bias": without_bias,
            "longer than wide": lambda: output(2, 6, 4),
            "as long as wide": lambda: output(2, 5, 5),
            "as many as long": lambda: output(3, 3, 5),
            "varies in evaluation": varies,
            "varies from call to call": varies_from_call_to_call,
            "how many come back": how_many_come_back,
        },
        edges=edges.of_module(
            lambda *dtype: settled(made(3, True, *dtype)),
            numbers(2, 4, 3, start=0.2),
            other=numbers(2, 2, 3),
            weights=tuple(f"{name}.weight" for name in LAYERS),
            large=1e4,
        )
        | {
            "varies in training": lambda: edges.varies(lambda: of_many(True)),
            "apart": apart,
            "overwrites": lambda: overwrites(
                settled(made(3)), numbers(2, 4, 3), numbers(2, 4, 3, start=0.5)
            ),
            "one sequence": lambda: output(1, 3, 4),
            "one number": lambda: output(2, 3, 1),
            "the last of many tokens": last_of_many,
            "tokens of some size": lambda: settled(made(4))(6 * numbers(2, 3, 4)),
            "one far above": one_far_above,
            "rows far apart": rows_far_apart,
            "all high": all_high,
            "large values": large_values,
            "a constant comes back": constant_comes_back,
            "new weights": new_weights,
        },
    )
    like_layers = {
        "a batch of 2": lambda: of_like_layers(2, 3, 4),
        "a batch of 4": lambda: of_like_layers(4, 5, 3),
        "all of size 3": lambda: of_like_layers(3, 3, 3),
        "one in a batch": lambda: of_like_layers(1, 4, 5),
    }
    one_token = {
        "a batch of 2": lambda: output(2, 1, 4),
        "a batch of 3": lambda: output(3, 1, 3),
        "one in a batch": lambda: output(1, 1, 5),
        "without bias": lambda: output(2, 1, 4, bias=False),
    }
    return {
        "SimpleAttention": forward,
        "SimpleAttention: like layers": Part(main=like_layers),
        "SimpleAttention: one token": Part(main=one_token),
    }
