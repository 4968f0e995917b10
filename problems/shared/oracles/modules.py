"""What tests do with right modules: the same as with the student's, but without checks."""

import torch

from grader.run import compare


def set_weights(module, weights):
    """Copy weights by name into a right module, and return it."""
    compare.set_weights(module, weights)
    return module


def gradients(output, inputs, upstream):
    """The gradients of (output * upstream).sum() with respect to inputs, by name."""
    loss = (output * upstream).sum()
    found = torch.autograd.grad(loss, [*inputs.values()], allow_unused=True)
    return {name: slope for name, slope in zip(inputs, found, strict=True) if slope is not None}
