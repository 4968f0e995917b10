"""The checks that tests use. An author of a test needs to know only this file.

A test calls the student's code and passes each result to a check, with the text of the call as
students write it. The same test runs in three places, and a check acts differently in each place:

    home      compares at once; the first mismatch ends the test
    worker    records the call and the student's value; it has no right answer to compare with
    trusted   records the call and a judge of the value; `problem` is the reference

The trusted process then judges the worker's first value with its first judge, and so on. So a test
must make the same checks in the same order for all correct submissions. Right answers come from
`shared.oracles` and from `solution`. In a worker both names are `UNKNOWN`, and reading the value
raises `AnswerRead`. Pass right answers to a check; do not branch on them, loop over them, print
them or write them into an input.

`require` states a fact about structure, such as the name of a layer. In a worker the fact is a
claim, which the trusted process cannot compare with anything. The record has no entry for it.
`gradients`, `parameters_of` and `set_weights` are explained in `compare`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy
from torch import Tensor

from grader.code.loading import out_of_memory
from grader.code.tensors import Array
from grader.errors import Mismatch
from grader.run import compare
from grader.run.encoding import Encoder, plain
from grader.run.rng import ArrayRng, Rng
from grader.run.unknown import UNKNOWN, AnswerRead, is_unknown

Judge = Callable[[Any], None]
"""Accepts a student's value, or raises Mismatch with a message for the student."""

_MOST_ENTRIES = 1 << 18
"""The maximum number of entries of a value that is compared with another value of the student.

Such a value can have any size, and describing the differences of millions of entries takes 2 GB.
"""


# Checks


def check(actual: Any, expected: Any, call: str, **near: Any) -> None:
    """Compare a student's value with the right answer: type, dtype, shape and numbers.

    Args:
        actual: the student's value.
        expected: the right tensor or array, from an oracle or `solution`.
        call: the call as a student would write it.
        near: tolerances and other options of `compare.check`.
    """
    right = _right(expected, call)
    _record(call, actual, lambda value: compare.check(value, right, call, **near))


def check_same(first: Any, second: Any, call: str, **near: Any) -> None:
    """Compare two values that the student's code returned; the second is the expected value."""

    def judge(values: Any) -> None:
        one, other = values
        if not isinstance(other, Tensor | Array):
            raise Mismatch(f"{call}\nIt returned {compare.kind(other)}, but numbers were expected.")
        if math.prod(other.shape) > _MOST_ENTRIES:
            raise Mismatch(f"{call}\nIt returned more than {_MOST_ENTRIES:,} numbers.")
        compare.check(one, other, call, **near)

    _record(call, (first, second), judge)


def check_that(value: Any, judge: Any, call: str, *arguments: Any) -> None:
    """Check a property with an oracle, for example the variance of many draws.

    Args:
        value: the student's value, or a tuple of all student values that the oracle needs.
        judge: the oracle. It is called as `judge(value, call, *arguments)` with copies. It raises
            Mismatch, for example with `compare.require`, if the property does not hold.
        call: the call as a student would write it.
        arguments: further arguments of the oracle. They must not contain student values.
    """
    oracle, copies = _right(judge, call), _kept(arguments)
    _record(call, value, lambda copied: oracle(copied, call, *copies))


def check_gradients(actual: Mapping[str, Any], expected: Any, call: str, **near: Any) -> None:
    """Compare gradients by name; ignore names that are not in `expected`."""
    right = _right(expected, call)

    def judge(gradients: Any) -> None:
        for name, gradient in right.items():
            if gradients.get(name) is None:
                raise compare.no_gradient(name, call)
            what = f"the gradient of {call} with respect to {name}"
            compare.check(gradients[name], gradient, what, **near)

    _record(f"the gradients of {call}", dict(actual), judge)


def check_form(actual: Any, expected: Any, call: str) -> Any:
    """Compare type, dtype and shape, and return the value detached. This check is a claim."""
    detached = compare.check_form(actual, expected, call)
    _claim(f"the form of {call}")
    return detached


def check_layer(module: Any, name: str, n_in: int, n_out: int, *, bias: bool = True) -> None:
    """Require a layer `nn.Linear(n_in, n_out, bias=bias)` called `name`. This check is a claim."""
    compare.check_layer(module, name, n_in, n_out, bias=bias)
    _claim(f"the layer {name}")


def require(fact: object, message: str) -> None:
    """Require a fact about structure or cost. This check is a claim.

    Args:
        fact: a true value if the fact holds.
        message: the message for the student if the fact does not hold.
    """
    compare.require(fact, message)
    _mode.claims += 1


# Explained in `compare`. They record nothing.

gradients = compare.gradients
parameters_of = compare.parameters_of
set_weights = compare.set_weights


# Right answers in a test


def prepared(make: Callable[[Any], Any], rng: Rng | ArrayRng) -> Any:
    """Return an input that depends on a right answer, for example a text without close choices.

    The worker receives the input, so the input must not contain a right answer.

    Args:
        make: creates the input from random numbers; never called in a worker.
        rng: the test's random numbers. `make` gets an independent generator, seeded from them.
    """
    independent = rng.independent()
    if _mode.place == "worker":
        return _mode.inputs.pop(0)
    value = plain(make(independent))
    if _mode.place == "trusted":
        _mode.inputs.append(deepcopy(value))
    return value


def parts(value: Any, number: int) -> tuple[Any, ...]:
    """Return the elements of a right answer as a tuple of `number` elements.

    In a worker, each element is `UNKNOWN`.
    """
    return (UNKNOWN,) * number if is_unknown(value) else tuple(value)


@contextmanager
def may_be_skipped(call: str) -> Iterator[Callable[[], bool]]:
    """Mark checks in a `with` block that a test may skip for code that is correct but slow.

    Yields a function that returns whether to skip the checks now: `if slow and skip(): return`. The
    trusted process never skips them.
    """
    before, _mode.block = _mode.block, call
    try:
        yield _skip
    finally:
        _mode.block = before


def _skip() -> bool:
    if _mode.place == "worker":
        _mode.record.append([_mode.block])
    return _mode.place != "trusted"


# Places


@dataclass(frozen=True)
class Expected:
    """A check in the trusted process's record.

    Attributes:
        call: the call as a student would write it.
        judge: accepts or rejects the worker's value.
        is_claim: whether the check is a claim, so that no value is compared.
        block: the call of the `may_be_skipped` block that contains the check, or an empty string.
    """

    call: str
    judge: Judge
    is_claim: bool = False
    block: str = ""


@dataclass
class Mode:
    """The state of the checks while a test runs.

    Attributes:
        place: the place where the test runs.
        inputs: the results of `prepared`, in order.
        record: the checks so far. In the trusted process, each is an `Expected`. In a worker, each
            is `[call, encoded value]`, or `[call]` for a skipped block.
        encoder: encodes the values of a worker's record.
        block: the call of the current `may_be_skipped` block, or an empty string.
        claims: the number of true facts that `require` has seen, which are not recorded.
    """

    place: Literal["home", "worker", "trusted"]
    inputs: list[Any] = field(default_factory=list)
    record: list[Any] = field(default_factory=list)
    encoder: Encoder = field(default_factory=Encoder)
    block: str = ""
    claims: int = 0


_mode = Mode("home")


@contextmanager
def running(mode: Mode) -> Iterator[Mode]:
    """Use a mode for all checks in a `with` block. The mode collects their record."""
    global _mode
    before, _mode = _mode, mode
    try:
        yield mode
    finally:
        _mode = before


def judge_value(judge: Judge, value: Any, call: str) -> None:
    """Judge a value, and treat a value that the judge cannot handle as a mismatch.

    Raises:
        Mismatch: the value is wrong; the text is a message for the student.
    """
    try:
        judge(value)
    except Exception as error:
        if isinstance(error, Mismatch) or out_of_memory(error):
            raise
        raise Mismatch(f"{call}\nIt returned {compare.kind(value)}, which is wrong.") from error


def _record(call: str, value: Any, judge: Judge, *, is_claim: bool = False) -> None:
    """At home, compare a value at once. In grading, add the check to the record."""
    if is_unknown(value):
        raise AnswerRead(f"the test passes it as the student's value in the check of {call}")
    match _mode.place:
        case "home":
            judge_value(judge, plain(value), call)
        case "worker":
            _mode.record.append([call, _mode.encoder.encode(value)])
        case "trusted":
            _mode.record.append(Expected(call, judge, is_claim, _mode.block))


def _claim(call: str) -> None:
    """Add a check without a value to the record."""
    _record(call, None, lambda value: None, is_claim=True)


def _right(value: Any, call: str) -> Any:
    """Return a right answer, in the trusted process as a copy.

    Raises:
        AnswerRead: this process is a worker and has the right answer, which must be `UNKNOWN`.
    """
    if _mode.place == "worker" and not is_unknown(value):
        raise AnswerRead(f"the test contains the right answer for {call}; use an oracle")
    return _kept(value) if _mode.place == "trusted" else value


def _kept(value: Any) -> Any:
    """Return a copy that the rest of the test does not change."""
    match value:
        case Tensor():
            return value.detach().clone()
        case numpy.ndarray():
            return value.copy()
        case Mapping():
            return {name: _kept(each) for name, each in value.items()}
        case list() | tuple():
            return [*map(_kept, value)]
    return value
