"""Define the questions of problem 02: calls whose answers identify mistakes."""

import functools

import torch

from grader.diagnose import edges
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from shared.three_layers import (
    about_parameters,
    filled,
    layer_weights,
    like_layer_weights,
)
from shared.worked_example import LAYERS


def probe(problem):
    """Return the questions about several aspects of the class."""
    return about_module(problem) | {
        "SimpleAttention: layers": about_parameters(
            lambda width, bias: problem.SimpleAttention(width, bias=bias),
            lambda: problem.SimpleAttention(),
        ),
    }


def about_module(problem):
    """Return three groups of questions about the output of SimpleAttention.

    In the second group, the layers are equal, so swapped layers have no effect. In the third group,
    there is a single token, so wrong scores have no effect. Such mistakes cannot hide others in
    these groups.
    """

    def made(n_embd, bias=True, dtype=torch.float64, **changes):
        # Small weights, so that unscaled scores are moderate.
        weights = layer_weights(n_embd, 1.8 / n_embd, bias) | changes
        return filled(problem.SimpleAttention(n_embd, bias=bias), weights, dtype).eval()

    @functools.cache
    def varies():
        return edges.varies(lambda: made(4)(numbers(5, 6, 4)))

    def varies_from_call_to_call():
        module = made(4)
        return edges.varies(lambda: module(numbers(5, 6, 4)))

    def settled(module):
        """Return the module, or raise ValueError if its output is random."""
        if varies():
            raise ValueError("the output is random")
        return module

    def output(*shape, bias=True):
        return settled(made(shape[-1], bias))(numbers(*shape, start=0.2))

    def without_bias():
        """Return the output without biases; one token occurs twice, and another one is 0."""
        x = numbers(2, 4, 4, start=0.2)
        x[0, 1], x[1, 2] = x[0, 0], 0
        return settled(made(4, False))(x)

    def of_like_layers(*shape):
        alike = like_layer_weights(shape[-1], 1.8 / shape[-1])
        return settled(made(shape[-1], **alike))(numbers(*shape, start=0.2))

    def one_far_above():
        """Return the output for scores that are thousands apart in each row."""
        query = 3000 * layer_weights(4, 0.45)["query.weight"]
        return settled(made(4, **{"query.weight": query}))(numbers(2, 3, 4))

    def constant_comes_back():
        """Return whether the average of equal values equals this value to twelve digits."""
        zeros, value = torch.zeros(4, 4, dtype=torch.float64), torch.full((4,), 0.7).double()
        module = settled(made(4, **{"value.weight": zeros, "value.bias": value}))
        return bool(((module(numbers(3, 5, 4)) - value).abs() < 1e-12).all())

    @torch.no_grad()
    def last_of_many():
        """Return whether the last of 260 tokens has an effect on the first output."""
        module, x = settled(made(2)), numbers(1, 260, 2)
        others = torch.cat([x[:, :-1], x[:, -1:] + 1], dim=1)
        first = module(x)[:, :1].clone()
        return not torch.equal(first, module(others)[:, :1])

    forward = Part(
        main={
            "all of size 3": lambda: output(3, 3, 3),
            "a batch of 2": lambda: output(2, 3, 4),
            "one in a batch": lambda: output(1, 5, 3).reshape(5, 3),
            "without bias": without_bias,
            "longer than wide": lambda: output(2, 6, 4),
            "varies from call to call": varies_from_call_to_call,
        },
        edges=edges.of_module(
            lambda *dtype: settled(made(3, True, *dtype)),
            numbers(2, 4, 3, start=0.2),
            other=numbers(2, 2, 3),
            weights=tuple(f"{name}.weight" for name in LAYERS),
            large=1e4,
        )
        | {
            "varies in training": lambda: edges.varies(lambda: made(4).train()(numbers(5, 6, 4))),
            "overwrites": lambda: edges.overwrites(
                settled(made(3)), numbers(2, 4, 3), numbers(2, 4, 3, start=0.5)
            ),
            "the last of many tokens": last_of_many,
            "tokens of some size": lambda: settled(made(4))(6 * numbers(2, 3, 4)),
            "one far above": one_far_above,
            "a constant comes back": constant_comes_back,
        },
    )
    like_layers = {
        "a batch of 2": lambda: of_like_layers(2, 3, 4),
        "all of size 3": lambda: of_like_layers(3, 3, 3),
        "one in a batch": lambda: of_like_layers(1, 4, 5),
    }
    one_token = {
        "a batch of 2": lambda: output(2, 1, 4),
        "one in a batch": lambda: output(1, 1, 5),
        "without bias": lambda: output(2, 1, 4, bias=False),
    }
    return {
        "SimpleAttention": forward,
        "SimpleAttention: like layers": Part(main=like_layers),
        "SimpleAttention: one token": Part(main=one_token),
    }
