"""Create and call correct modules. Tests do the same with the student's modules and add checks."""

import torch

from grader.run import compare


def set_weights(module, weights):
    """Copy weights by name into a right module, and return it."""
    compare.set_weights(module, weights)
    return module


def build(weights, make, *args, **named):
    """Return the correct module that `make` returns, with these weights and their dtype.

    No random numbers are drawn for its initial weights.
    """
    with torch.random.fork_rng(devices=[]):
        module = make(*args, **named)
    return set_weights(module.to(next(iter(weights.values())).dtype), weights)


def gradients(output, inputs, upstream):
    """Return the gradients of (output * upstream).sum() with respect to inputs, by name."""
    loss = (output * upstream).sum()
    slopes = torch.autograd.grad(loss, [*inputs.values()], allow_unused=True)
    return {name: slope for name, slope in zip(inputs, slopes, strict=True) if slope is not None}


def slopes(module, x, upstream, names=None):
    """Return the gradients of (module(x) * upstream).sum() with respect to x and the `trained`
    names.
    """
    parameters = compare.parameters_of(module, names or dict(module.named_parameters()))
    parameters = {name: each for name, each in parameters.items() if name != "key.bias"}
    x = x.detach().requires_grad_()
    return gradients(module(x), {"x": x, **parameters}, upstream)
