"""Judge results in the hidden tests of problem 06."""

from grader.run.compare import check


def has_gradients(gradients, call, right, near, part):
    """Require correct gradients.

    Args:
        gradients: the student's gradients, by name.
        call: the call, as text.
        right: the expected gradients, by name.
        near: tolerances, as for `check`.
        part: the absolute tolerance is at least this share of a gradient's largest entry.
    """
    for name, gradient in right.items():
        what = f"the gradient of {call} with respect to {name}"
        atol = max(near["atol"], part * gradient.abs().max().item())
        check(gradients[name], gradient, what, **near | {"atol": atol})
