"""Create correct modules, and compute their gradients."""

import torch

from grader.run import compare


def set_weights(module, weights):
    """Copy weights by name into a correct module, and return the module."""
    compare.set_weights(module, weights)
    return module


def build(weights, make, *args, **named):
    """Return a new correct module with these weights and their dtype.

    The global random state does not change.

    Args:
        weights: the weights by name.
        make: creates the module.
        args: the positional arguments of `make`.
        named: the keyword arguments of `make`.
    """
    with torch.random.fork_rng(devices=[]):
        module = make(*args, **named)
    return set_weights(module.to(next(iter(weights.values())).dtype), weights)


def gradients(output, inputs, upstream):
    """Return the gradients of (output * upstream).sum() with respect to `inputs`, by name."""
    loss = (output * upstream).sum()
    slopes = torch.autograd.grad(loss, [*inputs.values()], allow_unused=True)
    return {name: slope for name, slope in zip(inputs, slopes, strict=True) if slope is not None}


def slopes(module, x, upstream, names=None):
    """Return the gradients of (module(x) * upstream).sum(), by name.

    Args:
        module: the correct module.
        x: its input.
        upstream: the gradient with respect to the output.
        names: the names of parameters; by default all. `key.bias` is always left out.
    """
    parameters = compare.parameters_of(module, names or dict(module.named_parameters()))
    parameters = {name: each for name, each in parameters.items() if name != "key.bias"}
    x = x.detach().requires_grad_()
    return gradients(module(x), {"x": x, **parameters}, upstream)
