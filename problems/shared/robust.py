"""Test the rules for the code of all problems (docs/robust.md).

A test file defines a call of a function or module, and the rules that it tests:

    @pytest.mark.points(2)
    @robust.parts(*robust.COMMON)
    def test_weighted_sum_in_use(problem, rng, part):
        \"\"\"weighted_sum follows the rules for all problems\"\"\"

        def call(n=4, d=5, dtype=torch.float32):
            inputs = {"w": rng.normal(n, dtype=dtype), "x": rng.normal(n, d, dtype=dtype)}
            return robust.Call(
                "weighted_sum(w, x)",
                problem.weighted_sum,
                inputs,
                oracles.weighted_sum,
                slopes=lambda upstream: oracles.slopes(inputs, upstream),
            )

        robust.check_part(part, rng, call, sizes="n d")

A part is the name of a rule. The test runs once for each part, and its points are divided equally
between the parts.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from grader.run import checks
from grader.run.calls import answers
from shared import worked_example as example


@dataclass(frozen=True)
class Call:
    """A call of the student's code, and the functions that compute the expected results.

    Attributes:
        text: the call as a student would write it.
        code: the student's function or module. Its result must not be random, so a module with
            dropout is in evaluation mode.
        arguments: the arguments by name, in the order in which they are passed by position.
        right: returns the expected result for given arguments and for `weights`.
        weights: the weights of the module, by name; empty for a function.
        slopes: takes the gradient with respect to the result. It returns the expected gradients by
            the names of arguments and weights. Gradients with other names are not compared.
        near: tolerances, as for `checks.check`.
        module: the module that contains `weights`, if it is not `code`.
        compare: compares a result with the expected result; by default `checks.check`. A result
            that is a tuple needs another function, and does not support the part "gradients".
    """

    text: str
    code: Any
    arguments: dict
    right: Any
    weights: dict = field(default_factory=dict)
    slopes: Any = None
    near: dict = field(default_factory=dict)
    module: Any = None
    compare: Any = checks.check

    @property
    def holder(self):
        """The module that contains the weights."""
        return self.code if self.module is None else self.module

    @property
    def tensors(self):
        """The arguments that are tensors, by name."""
        return {name: each for name, each in self.arguments.items() if torch.is_tensor(each)}

    def check(self, what="", *, arguments=None, **near):
        """Call the code, compare its result with the expected result, and return the result.

        Args:
            what: text that is added to the call in messages.
            arguments: the arguments of the call; by default `self.arguments`.
            near: tolerances that replace those of `self.near`.
        """
        arguments = self.arguments if arguments is None else arguments
        actual = self.code(*example.copies(arguments).values())
        right = self.right(*arguments.values())
        self.compare(actual, right, self.text + what, **{**self.near, **near})
        return actual


KEPT = ("transposed memory", "nothing changed", "second call")
"""The parts about memory layout, changed arguments and earlier calls."""

COMMON = ("float32", "float64", "sizes of one", *KEPT, "gradients")
"""The parts that apply to nearly all functions and modules."""

LEADING = ("one leading dimension", "two leading dimensions", "three leading dimensions")
"""The parts for functions that accept any number of leading dimensions."""


def parts(*names):
    """Return a pytest mark that runs a test once for each of these parts.

    The test receives the name of the part as its argument `part`.
    """
    unknown = {*names} - {*_PARTS}
    if unknown:
        raise ValueError(f"unknown parts {unknown}; the known parts are {[*_PARTS]}")
    return pytest.mark.parametrize("part", names)


def check_part(part, rng, call, *, sizes="", other=None):
    """Check that code follows one of the rules.

    Args:
        part: the name of the rule, see `parts`.
        rng: generates the gradients with respect to the results.
        call: returns a `Call` with new random arguments. Its keyword arguments are `dtype`, `lead`
            (the leading dimensions) and sizes, as far as the tested parts need them.
        sizes: the names of the sizes that the part "sizes of one" sets to 1, separated by spaces.
        other: the sizes of another call in the part "second call".
    """
    _PARTS[part](call, rng, sizes.split(), other or {})


def _in_dtype(dtype):
    def check(call, *_):
        name = str(dtype).removeprefix("torch.")
        call(dtype=dtype).check(f" in {name}", all_digits=True)

    return check


def _with_leading(*lead):
    def check(call, *_):
        case = call(lead=lead)
        case.check(f" with {_shapes(case)}")

    return check


def _shapes(case):
    shapes = [f"{name} of shape {tuple(each.shape)}" for name, each in case.tensors.items()]
    return ", ".join(shapes)


def _sizes_of_one(call, rng, sizes, other):
    ones = {name: (1,) if name == "lead" else 1 for name in sizes}
    for some in [*({name: one} for name, one in ones.items()), ones]:
        case = call(**some)
        case.check(f" with {_shapes(case)}")


def _transposed(call, rng, sizes, other):
    case = call()
    turned = {name: example.turned(each) for name, each in case.tensors.items()}
    case.check(" with transposed tensors", arguments={**case.arguments, **turned})


def _nothing_changed(call, rng, sizes, other):
    case = call()
    right = case.right(*example.copies(case.arguments).values())
    with example.state_unchanged(case.text), example.unchanged(case.text, **case.tensors):
        actual = case.code(*case.arguments.values())
    case.compare(actual, right, case.text, **case.near)
    if case.weights:
        example.check_weights_are_kept(case.holder, case.weights, case.text)


def _second_call(call, rng, sizes, other):
    case, later = call(), [call(), call(**other)]
    calls = [each.arguments for each in (case, *later, case)]
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            # Compare results after the last call, as a later call must not change earlier results.
            results = answers(case.code, [[*example.copies(each).values()] for each in calls])
        for number, (actual, arguments) in enumerate(zip(results, calls, strict=True), start=1):
            right = case.right(*arguments.values())
            how = "" if enabled else " under torch.no_grad()"
            text = f"{case.text}, call {number} of {len(calls)}{how}"
            case.compare(actual, right, text, **case.near)
    if case.weights:
        # Call the same module with the same arguments, but with other weights.
        checks.set_weights(case.holder, later[0].weights)
        for what in (", after a change of the weights", ", after eval()"):
            actual = case.code(*example.copies(case.arguments).values())
            right = later[0].right(*case.arguments.values())
            case.compare(actual, right, case.text + what, **case.near)
            case.holder.eval()


def _gradients(call, rng, sizes, other):
    case = call()
    inputs = {n: t.requires_grad_() for n, t in case.tensors.items() if t.is_floating_point()}
    actual = case.check()
    upstream = rng.normal(*actual.shape, dtype=actual.dtype)
    if case.weights:
        inputs |= example.trained_parameters(case.holder, case.weights)
    gradients = checks.gradients(actual, inputs, upstream, case.text, may_miss=True)
    near = {"atol": 1e-4, **case.near}
    checks.check_gradients(gradients, case.slopes(upstream), case.text, **near)


_PARTS = {
    "float16": _in_dtype(torch.float16),
    "bfloat16": _in_dtype(torch.bfloat16),
    "float32": _in_dtype(torch.float32),
    "float64": _in_dtype(torch.float64),
    "sizes of one": _sizes_of_one,
    "one leading dimension": _with_leading(2),
    "two leading dimensions": _with_leading(3, 2),
    "three leading dimensions": _with_leading(2, 1, 3),
    "transposed memory": _transposed,
    "nothing changed": _nothing_changed,
    "second call": _second_call,
    "gradients": _gradients,
}
