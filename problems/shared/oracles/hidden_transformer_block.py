"""Judges for the hidden tests of problem 06."""

from grader.run.compare import check


def has_gradients(gradients, call, right, near, part):
    """Require right gradients, by name; errors may be a small part of the largest entry of each."""
    for name, gradient in right.items():
        what = f"the gradient of {call} with respect to {name}"
        atol = max(near["atol"], part * gradient.abs().max().item())
        check(gradients[name], gradient, what, **near | {"atol": atol})
