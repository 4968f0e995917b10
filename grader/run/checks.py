"""The checks that tests use. An author of a test needs to know only this file.

A test calls the student's code and passes each result to a check, with the text of the call as
students write it. The same test runs in three places, and a check acts differently in each place:

    home      on the student's computer: compares at once; the first mismatch ends the test
    worker    in grading, beside student code: records the call and the value, without comparing
    trusted   in grading, with the reference as `problem`: records the call and a judge of the value

The trusted process then judges each value of the worker's record with the judge at the same
position of its own record. So a test must make the same checks in the same order for all correct
submissions. Right answers come from `shared.oracles` and from `solution`. In a worker both names
are `UNKNOWN`, and reading the value raises `AnswerRead`. Pass right answers to a check; do not
branch on them, loop over them, print them or write them into an input.

`require` states a fact about structure, such as the name of a layer. The trusted process cannot
verify such a fact, so in grading it is a claim of the worker. The record has no entry for it.
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
from grader.run.encoding import Encoder, round_trip
from grader.run.rng import ArrayRng, Rng
from grader.run.unknown import UNKNOWN, AnswerRead, is_unknown

Judge = Callable[[Any], None]
"""A function that accepts a student's value, or raises Mismatch with a message for the student."""

_MOST_ENTRIES = 1 << 18
"""The maximum number of entries of an expected value that the student's code returned.

A student's value can have any size, and describing millions of differences takes 2 GB of memory.
"""


# Checks


def check(actual: Any, expected: Any, call: str, **options: Any) -> None:
    """Compare a student's value with the right answer: type, dtype, shape and numbers.

    Args:
        actual: the student's value.
        expected: the right tensor or array, from an oracle or `solution`.
        call: the call as a student would write it.
        options: tolerances and other options of `compare.check`.
    """
    right = _right_answer(expected, call)
    _record(call, actual, lambda value: compare.check(value, right, call, **options))


def check_same(first: Any, second: Any, call: str, **options: Any) -> None:
    """Compare two values that the student's code returned; `second` is the expected value."""

    def judge(values: Any) -> None:
        one, other = values
        if not isinstance(other, Tensor | Array):
            raise Mismatch(f"{call}\nIt returned {compare.kind(other)}, but numbers were expected.")
        if math.prod(other.shape) > _MOST_ENTRIES:
            raise Mismatch(f"{call}\nIt returned more than {_MOST_ENTRIES:,} numbers.")
        compare.check(one, other, call, **options)

    _record(call, (first, second), judge)


def check_that(value: Any, judge: Any, call: str, *arguments: Any) -> None:
    """Check a property of a student's value with an oracle, for example the variance of samples.

    Args:
        value: the student's value, or a tuple of all student values that the oracle needs.
        judge: the oracle. It is called as `judge(value, call, *arguments)`, with copies of the
            values. It raises Mismatch, for example with `compare.require`, if the property does
            not hold.
        call: the call as a student would write it.
        arguments: further arguments of the oracle. They must not contain student values.
    """
    oracle, copies = _right_answer(judge, call), _copy(arguments)
    _record(call, value, lambda copied: oracle(copied, call, *copies))


def check_gradients(actual: Mapping[str, Any], expected: Any, call: str, **options: Any) -> None:
    """Compare each gradient in `expected` with the gradient of the same name in `actual`."""
    right = _right_answer(expected, call)

    def judge(gradients: Any) -> None:
        for name, gradient in right.items():
            if gradients.get(name) is None:
                raise compare.no_gradient(name, call)
            what = f"the gradient of {call} with respect to {name}"
            compare.check(gradients[name], gradient, what, **options)

    _record(f"the gradients of {call}", dict(actual), judge)


def check_form(actual: Any, expected: Any, call: str) -> Any:
    """Compare type, dtype and shape, and return `actual` detached.

    In grading, only the worker makes this check, so its outcome is an unverified claim.
    """
    detached = compare.check_form(actual, expected, call)
    _claim(f"the form of {call}")
    return detached


def check_layer(module: Any, name: str, n_in: int, n_out: int, *, bias: bool = True) -> None:
    """Require that `module` has a layer `nn.Linear(n_in, n_out, bias=bias)` called `name`.

    In grading, only the worker makes this check, so its outcome is an unverified claim.
    """
    compare.check_layer(module, name, n_in, n_out, bias=bias)
    _claim(f"the layer {name}")


def require(fact: object, message: str) -> None:
    """Require a fact about the structure or the cost of the student's code.

    In grading, only the worker makes this check, so its outcome is an unverified claim.

    Args:
        fact: a true value if the fact holds.
        message: the message for the student if the fact does not hold.
    """
    compare.require(fact, message)
    _mode.claims += 1


# In grading, these functions of `compare` add no check to the record.

gradients = compare.gradients
parameters_of = compare.parameters_of
set_weights = compare.set_weights


# Right answers in a test


def prepared(make: Callable[[Any], Any], rng: Rng | ArrayRng) -> Any:
    """Return an input that is computed from a right answer, for example the least likely targets.

    Student code sees the input, so no right answer may be part of it.

    Args:
        make: creates the input from a random number generator. It is not called in a worker.
        rng: the test's generator, from which the seed for the generator of `make` is drawn.
    """
    independent = rng.independent()
    if _mode.place == "worker":
        return _mode.inputs.pop(0)
    value = round_trip(make(independent))
    if _mode.place == "trusted":
        _mode.inputs.append(deepcopy(value))
    return value


def parts(value: Any, number: int) -> tuple[Any, ...]:
    """Return the `number` elements of a right answer as a tuple.

    In a worker, each element is `UNKNOWN`.
    """
    return (UNKNOWN,) * number if is_unknown(value) else tuple(value)


@contextmanager
def may_be_skipped(call: str) -> Iterator[Callable[[], bool]]:
    """Allow a test to skip the checks in a `with` block if the student's code is correct but slow.

    Yields a function `skip` that returns whether to skip the checks, for use in a line such as
    `if slow and skip(): return`. In the trusted process it always returns False.
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
        is_claim: whether the worker only claims the result, so that no value is compared.
        block: the argument of the enclosing `may_be_skipped`, or an empty string.
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
        inputs: the prepared inputs, in order. The trusted process appends them; a worker removes
            them as the test uses them.
        record: the checks so far. In the trusted process, each entry is an `Expected`. In a worker,
            each entry is `[call, encoded value]`, or `[call]` for a skipped block.
        encoder: encodes the values of a worker's record.
        block: the argument of the current `may_be_skipped`, or an empty string.
        claims: the number of facts that `require` has accepted. They are not in `record`.
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
    """Use `mode` for all checks in a `with` block, and record the checks in `mode.record`."""
    global _mode
    before, _mode = _mode, mode
    try:
        yield mode
    finally:
        _mode = before


def judge_value(judge: Judge, value: Any, call: str) -> None:
    """Judge a value. If the judge raises an unexpected exception, treat the value as wrong.

    Raises:
        Mismatch: the value is wrong. The exception's text is a message for the student.
    """
    try:
        judge(value)
    except Exception as error:
        if isinstance(error, Mismatch) or out_of_memory(error):
            raise
        raise Mismatch(f"{call}\nIt returned {compare.kind(value)}, which is wrong.") from error


def _record(call: str, value: Any, judge: Judge, *, is_claim: bool = False) -> None:
    """At home, judge a value at once. In grading, add the check to the record."""
    if is_unknown(value):
        raise AnswerRead(f"the test passes it as the student's value in the check of {call}")
    match _mode.place:
        case "home":
            judge_value(judge, round_trip(value), call)
        case "worker":
            _mode.record.append([call, _mode.encoder.encode(value)])
        case "trusted":
            _mode.record.append(Expected(call, judge, is_claim, _mode.block))


def _claim(call: str) -> None:
    """Record a check without a value. Its outcome is only a claim of the worker."""
    _record(call, None, lambda value: None, is_claim=True)


def _right_answer(value: Any, call: str) -> Any:
    """Return `value`, a right answer. In the trusted process, return a copy.

    Raises:
        AnswerRead: this process is a worker, and `value` is not `UNKNOWN`.
    """
    if _mode.place == "worker" and not is_unknown(value):
        raise AnswerRead(f"the test contains the right answer for {call}; use an oracle")
    return _copy(value) if _mode.place == "trusted" else value


def _copy(value: Any) -> Any:
    """Copy the tensors and arrays in a value, so that the rest of the test can't change them."""
    match value:
        case Tensor():
            return value.detach().clone()
        case numpy.ndarray():
            return value.copy()
        case Mapping():
            return {name: _copy(each) for name, each in value.items()}
        case list() | tuple():
            return [*map(_copy, value)]
    return value
