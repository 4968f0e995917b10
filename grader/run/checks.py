"""The checks that tests use. An author of a test needs to know only this file.

A test calls the student's code and passes each result to a check, with the call as students write
it. The same test runs in three places, and a check acts differently in each:

    home      compares at once; the first mismatch ends the test
    worker    records the call and the student's value; it has no right answer to compare with
    trusted   records the call and a judge of the value; `problem` is the reference

The trusted process then judges the worker's first value with its first judge, and so on. So a test
must make the same checks in the same order for all right answers. Right answers come from
`shared.oracles` and from `solution`. In a worker both are `UNKNOWN`, and reading them raises
`AnswerRead`. Pass them to a check; do not branch on them, loop over them, print them or write them
into an input.

`require` states a fact about structure, such as the name of a layer. It is a claim of the worker; a
true one is not recorded. `gradients`, `parameters_of` and `set_weights` are explained in `compare`.
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
"""The most entries of a value that is compared with another value of the student's code.

No expected value limits its size, and describing the differences of millions of entries takes 2 GB.
"""


# Checks


def check(actual: Any, expected: Any, call: str, **near: Any) -> None:
    """Compare a value with the right one: type, dtype, shape and numbers.

    Args:
        actual: the student's value.
        expected: the right tensor or array, from an oracle or `solution`.
        call: the call as a student would write it.
        near: tolerances and other options of `compare.check`.
    """
    right = _right(expected, call)
    _record(call, actual, lambda value: compare.check(value, right, call, **near))


def check_same(first: Any, second: Any, call: str, **near: Any) -> None:
    """Compare two values of the student's code; both are recorded."""

    def judge(values: Any) -> None:
        one, other = values
        if not isinstance(other, Tensor | Array):
            raise Mismatch(f"{call}\nIt returned {compare.kind(other)}, but numbers were expected.")
        if math.prod(other.shape) > _MOST_ENTRIES:
            raise Mismatch(f"{call}\nIt returned more than {_MOST_ENTRIES:,} numbers.")
        compare.check(one, other, call, **near)

    _record(call, (first, second), judge)


def check_that(value: Any, judge: Any, call: str, *given: Any) -> None:
    """Check a property by an oracle, such as a variance over many draws.

    Args:
        value: all student values that the property is about, for example a tuple of them.
        judge: the oracle. It is called as `judge(value, call, *given)` with copies and raises
            Mismatch, for example by `compare.require`.
        call: the call as a student would write it.
        given: further arguments of the oracle, without student values.
    """
    oracle, arguments = _right(judge, call), _kept(given)
    _record(call, value, lambda copied: oracle(copied, call, *arguments))


def check_gradients(actual: Mapping[str, Any], expected: Any, call: str, **near: Any) -> None:
    """Compare gradients by name; only the names in `expected` count."""
    right = _right(expected, call)

    def judge(gradients: Any) -> None:
        for name, gradient in right.items():
            if gradients.get(name) is None:
                raise compare.no_gradient(name, call)
            what = f"the gradient of {call} with respect to {name}"
            compare.check(gradients[name], gradient, what, **near)

    _record(f"the gradients of {call}", dict(actual), judge)


def check_form(actual: Any, expected: Any, call: str) -> Any:
    """Compare type, dtype and shape, and return the value detached. This is a claim."""
    detached = compare.check_form(actual, expected, call)
    _claim(f"the form of {call}")
    return detached


def check_layer(module: Any, name: str, n_in: int, n_out: int, *, bias: bool = True) -> None:
    """Require that `module.<name>` is an `nn.Linear(n_in, n_out, bias=bias)`. This is a claim."""
    compare.check_layer(module, name, n_in, n_out, bias=bias)
    _claim(f"the layer {name}")


def require(fact: object, message: str) -> None:
    """Require a fact about structure or cost. This is a claim.

    Args:
        fact: a true value if the fact holds.
        message: the message for the student if it does not.
    """
    compare.require(fact, message)
    _mode.claims += 1


# Explained in `compare`. They record nothing.

gradients = compare.gradients
parameters_of = compare.parameters_of
set_weights = compare.set_weights


# Right answers in a test


def prepared(make: Callable[[Any], Any], rng: Rng | ArrayRng) -> Any:
    """Return an input that needs a right answer, for example a text without close choices.

    It reaches the worker, so it must not contain a right answer.

    Args:
        make: creates the input from random numbers; never called in a worker.
        rng: the test's random numbers, from which the seed of these is drawn.
    """
    own = rng.independent()
    if _mode.place == "worker":
        return _mode.inputs.pop(0)
    value = plain(make(own))
    if _mode.place == "trusted":
        _mode.inputs.append(deepcopy(value))
    return value


def parts(value: Any, number: int) -> tuple[Any, ...]:
    """Return the parts of a right answer; `number` is their number."""
    return (UNKNOWN,) * number if is_unknown(value) else tuple(value)


@contextmanager
def may_be_skipped(call: str) -> Iterator[Callable[[], bool]]:
    """Mark checks that a test may skip for code that is right but slow.

    Yields a function that returns whether to skip them now: `if slow and skip(): return`.
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
        judge: judges a value.
        is_claim: whether no value is compared.
        block: the call of the block that may be skipped, if the check is in one.
    """

    call: str
    judge: Judge
    is_claim: bool = False
    block: str = ""


@dataclass
class Mode:
    """The state of the checks while a test runs.

    Attributes:
        place: the place in which the test runs.
        inputs: the prepared inputs, in order.
        record: the checks, `Expected` in the trusted process. In a worker `[call, encoded value]`,
            and `[call]` where a block was skipped.
        encoder: encodes the values of a worker's record, when they are recorded.
        block: the call of the block that may be skipped, inside of one.
        claims: how many claims held that are not recorded.
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
    """Run checks in this mode, which collects the record."""
    global _mode
    before, _mode = _mode, mode
    try:
        yield mode
    finally:
        _mode = before


def judge_value(judge: Judge, value: Any, call: str) -> None:
    """Judge a value. A value that the judge cannot handle is a mismatch, too.

    Raises:
        Mismatch: with a message for the student.
    """
    try:
        judge(value)
    except Exception as error:
        if isinstance(error, Mismatch) or out_of_memory(error):
            raise
        raise Mismatch(f"{call}\nIt returned {compare.kind(value)}, which is wrong.") from error


def _record(call: str, value: Any, judge: Judge, *, is_claim: bool = False) -> None:
    """Compare now, or record the check for the trusted process."""
    if is_unknown(value):
        raise AnswerRead(f"it is the student's value in the check of {call}")
    match _mode.place:
        case "home":
            judge_value(judge, plain(value), call)
        case "worker":
            _mode.record.append([call, _mode.encoder.encode(value)])
        case "trusted":
            _mode.record.append(Expected(call, judge, is_claim, _mode.block))


def _claim(call: str) -> None:
    """Record that a requirement was met, without a value."""
    _record(call, None, lambda value: None, is_claim=True)


def _right(value: Any, call: str) -> Any:
    """Return a right answer, which a worker must not have; copy it in the trusted process.

    Raises:
        AnswerRead: this is a worker, and the answer is known.
    """
    if _mode.place == "worker" and not is_unknown(value):
        raise AnswerRead(f"the test itself knows the right answer for {call}; use an oracle")
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
