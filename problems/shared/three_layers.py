"""Test helpers for modules with the layers query, key and value (problems 02 to 04)."""

import torch

from grader.code.tensors import parameters
from grader.diagnose import edges
from grader.diagnose.numbers import numbers
from grader.diagnose.probe import Part
from grader.run.calls import seconds
from grader.run.checks import check, may_be_skipped, set_weights
from shared.worked_example import LAYERS


def layer_weights(n_embd, size, bias=True):
    """Return fixed weights of the layers query, key and value, by name.

    Args:
        n_embd: the embedding width.
        size: the scale of the numbers in the matrices.
        bias: whether the layers have a bias.
    """
    weights = {}
    for start, name in enumerate(LAYERS):
        weights[f"{name}.weight"] = size * numbers(n_embd, n_embd, start=1.3 * start)
        if bias:
            weights[f"{name}.bias"] = 0.4 * numbers(n_embd, start=2.0 + start)
    return weights


def like_layer_weights(n_embd, size):
    """Return equal weights for the three layers, so that swapped layers have no effect."""
    weights = layer_weights(n_embd, size)
    return {
        f"{name}.{part}": weights[f"key.{part}"] for name in LAYERS for part in ("weight", "bias")
    }


def filled(module, weights, dtype=torch.float64):
    """Load weights into a module, and return the module.

    A bias that the module lacks is skipped. A parameter that `weights` does not contain is filled
    with fixed numbers other than 0. So both a missing and an additional bias change the output.
    """
    module = module.to(dtype)
    every = parameters(module)
    set_weights(module, {n: w for n, w in weights.items() if n in every or n.endswith("weight")})
    # Compare identities, as a parameter may have several names.
    known = {id(each) for name, each in every.items() if name in weights}
    others = {name: each for name, each in every.items() if id(each) not in known}
    set_weights(module, {name: numbers(*p.shape, start=4.0) for name, p in others.items()})
    return module


def about_parameters(make, default):
    """Return questions about the parameters of a module with layers query, key and value.

    Args:
        make: returns a new module; its arguments are the width and whether there is a bias.
        default: returns a new module with default arguments.
    """
    names = [f"{layer}.{part}" for layer in LAYERS for part in ("weight", "bias")]

    def existing(bias):
        """Return for each name 1 if a parameter has it, else 0.

        The names are those of the expected parameters and those of the layers.
        """
        every = parameters(make(4, bias))
        return torch.tensor([float(name in every) for name in (*names, *LAYERS)])

    def sizes():
        matrices = [getattr(make(5, True), name).weight for name in LAYERS]
        return torch.tensor([size for weight in matrices for size in weight.shape])

    def layers_are_shared():
        every = parameters(make(4, False))
        return len({id(every[f"{name}.weight"]) for name in LAYERS}) < len(LAYERS)

    return Part(
        main={
            "with bias": lambda: existing(True),
            "without bias": lambda: existing(False),
            "sizes": sizes,
            "default width": lambda: len(default().query.weight),
            "default bias": lambda: default().query.bias is not None,
        },
        edges={
            "starts alike": lambda: edges.starts_alike(lambda: make(4, True)),
            "layers are shared": layers_are_shared,
        },
    )


def check_long_sequence(right, module, x, call):
    """Compare the output of a module for a long sequence with the correct output.

    The check is skipped if the module loops over pairs of positions, as it would take minutes.

    Args:
        right: the correct module.
        module: the student's module.
        x: the sequence, shape (1, T, C).
        call: the call, as text.
    """
    short = torch.zeros_like(x[:, :96])
    with may_be_skipped(call) as skip:
        # Repeat the call, as a call on a busy machine may wait for longer than it runs.
        fast = any(seconds(lambda: module(short)) < 0.02 for _ in range(8))
        if not fast and skip():
            return
        with torch.no_grad():  # the autograd graph of a loop would take gigabytes
            check(module(x.clone()), right(x), call)
