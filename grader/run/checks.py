"""The checks that a test is made of. This file is all that the author of a test has to know.

A test calls the student's code and passes each result to a check, with the call as students write
it. The same test runs in three places, and a check does in each what belongs there:

    home      compares at once; the first mismatch ends the test
    worker    records the call and the student's value; there is no right answer to compare with
    trusted   records the call and how a value is judged; `problem` is the reference

The trusted side then judges the worker's first value with its own first judge, and so on. So a test
must make the same checks in the same order whatever the right answers are. Right answers come from
`shared.oracles` and from `solution`; in a worker both are `UNKNOWN`, and reading them raises
`AnswerRead`. Pass them to a check, and do not branch on them, loop over them, print them or write
them into an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy
from torch import Tensor, nn

from grader.code.out_of_memory import out_of_memory
from grader.code.tensors import Array
from grader.errors import Mismatch
from grader.run import compare
from grader.run.encoding import Encoder, plain
from grader.run.rng import ArrayRng, Rng
from grader.run.unknown import UNKNOWN, AnswerRead, is_unknown

Judge = Callable[[Any], None]
"""Accepts a student's value, or raises Mismatch with a message for the student."""


# Checks


def check(actual: Any, expected: Any, call: str, **near: Any) -> None:
    """Compare a value with the right one: type, dtype, shape and numbers.

    Args:
        actual: the student's value.
        expected: the right tensor or array, from an oracle or `solution`.
        call: what was called, as a student would write it.
        near: how near is right, and other options of `compare.check`.
    """
    right = _right(expected, call)
    _record(call, actual, lambda value: compare.check(value, right, call, **near))


def check_same(first: Any, second: Any, call: str, **near: Any) -> None:
    """Compare two values that both come from the student's code; both are recorded."""

    def judge(values: Any) -> None:
        one, other = values
        if not isinstance(other, Tensor | Array):
            raise Mismatch(f"{call}\nIt returned {compare.kind(other)}, but numbers were expected.")
        compare.check(one, other, call, **near)

    _record(call, (first, second), judge)


def check_that(value: Any, judge: Any, call: str, *given: Any) -> None:
    """Check a property by an oracle, such as a variance over many draws.

    Args:
        value: all student values that the property is about, for example a tuple of them.
        judge: the oracle. It is called as `judge(value, call, *given)` and raises Mismatch, by
            `compare.require` for example. It gets copies.
        call: what was called, as a student would write it.
        given: what else the oracle needs; no student value.
    """
    judged, rest = _right(judge, call), _kept(given)
    _record(call, value, lambda found: judged(found, call, *rest))


def check_gradients(actual: Mapping[str, Any], expected: Any, call: str, **near: Any) -> None:
    """Compare gradients by name, of which only those in `expected` count."""
    right = _right(expected, call)

    def judge(found: Any) -> None:
        for name, gradient in right.items():
            if found.get(name) is None:
                raise compare.no_gradient(name, call)
            compare.check(
                found[name], gradient, f"the gradient of {call} with respect to {name}", **near
            )

    _record(f"the gradients of {call}", dict(actual), judge)


def check_form(actual: Any, expected: Any, call: str) -> Any:
    """Compare type, dtype and shape, and return the value detached. This is a claim."""
    found = compare.check_form(actual, expected, call)
    _claim(f"the form of {call}")
    return found


def check_layer(module: Any, name: str, n_in: int, n_out: int, *, bias: bool = True) -> None:
    """Require that `module.<name>` is an `nn.Linear(n_in, n_out, bias=bias)`. This is a claim."""
    compare.check_layer(_students(module), name, n_in, n_out, bias=bias)
    _claim(f"the layer {name}")


def require(condition: Any, message: str) -> None:
    """Require a fact about structure. This is a claim, and one that holds is not recorded."""
    compare.require(condition, message)


# Student values to check


def gradients(
    output: Any,
    inputs: Mapping[str, Tensor],
    upstream: Tensor,
    call: str,
    *,
    may_miss: bool = False,
) -> dict[str, Tensor]:
    """Return the gradient of `(output * upstream).sum()` with respect to each of `inputs`.

    Args:
        output: what the student's code returned.
        inputs: the tensors to differentiate by, with the names to use in a message.
        upstream: random weights; a plain sum may have no gradient for other reasons.
        call: what was called, as a student would write it.
        may_miss: whether to leave out inputs that no gradient reaches, for `check_gradients` to
            say so of those that count.
    """
    return compare.gradients(_students(output), inputs, upstream, call, may_miss=may_miss)


def set_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights by name, such as `query.weight`, into the student's module."""
    compare.set_weights(_students(module), weights)


def parameters_of(module: nn.Module, names: Any) -> dict[str, nn.Parameter]:
    """Return the parameters with these names of the student's module."""
    return compare.parameters_of(_students(module), names)


# Right answers in a test


def prepared(make: Callable[[Any], Any], rng: Rng | ArrayRng) -> Any:
    """Return an input that needs a right answer, for example a text without close choices.

    It reaches the worker, so it must not contain a right answer.

    Args:
        make: makes the input, in no worker. It gets random numbers of its own.
        rng: the test's random numbers, of which this takes a seed.
    """
    own = rng.independent()
    if _mode.place == "worker":
        return _mode.inputs.pop(0)
    found = plain(make(own))
    if _mode.place == "trusted":
        _mode.inputs.append(deepcopy(found))
    return found


def parts(value: Any, number: int) -> tuple[Any, ...]:
    """Return the parts of a right answer, of which there are so many."""
    return (UNKNOWN,) * number if is_unknown(value) else tuple(value)


@contextmanager
def may_be_skipped(call: str) -> Iterator[Callable[[], bool]]:
    """Mark checks that code may leave out because it is right but slow.

    Gives a function that says whether to leave them out now: `if slow and skip(): return`.
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
    """A check in the trusted side's record: the call and how a value is judged.

    Attributes:
        call: what was called.
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
    """What checks do, and what they did.

    Attributes:
        place: where the test runs.
        inputs: the prepared inputs, in order.
        record: the checks, `Expected` on the trusted side. In a worker `[call, encoded value]`,
            and `[call]` where a block was skipped.
        encoder: encodes the values of a worker's record, when they are recorded.
        block: the call of the block that may be skipped, inside of one.
    """

    place: Literal["home", "worker", "trusted"]
    inputs: list[Any] = field(default_factory=list)
    record: list[Any] = field(default_factory=list)
    encoder: Encoder = field(default_factory=Encoder)
    block: str = ""


_mode = Mode("home")


@contextmanager
def running(mode: Mode) -> Iterator[Mode]:
    """Let checks do what belongs to this place, and keep what they did."""
    global _mode
    before, _mode = _mode, mode
    try:
        yield mode
    finally:
        _mode = before


def judge_value(judge: Judge, value: Any, call: str) -> None:
    """Judge a value; one that a judge cannot handle is a mismatch, too.

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
    """Compare now, or record what the trusted side needs to compare later."""
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
    """Record that a requirement held, which no value shows."""
    _record(call, None, lambda value: None, is_claim=True)


def _right(value: Any, call: str) -> Any:
    """Return a right answer, which a worker must not have; the trusted side keeps a copy.

    Raises:
        AnswerRead: this is a worker, and the answer is known.
    """
    if _mode.place == "worker" and not is_unknown(value):
        raise AnswerRead(f"the test itself knows what is right for {call}; ask an oracle")
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


def _students(value: Any) -> Any:
    if is_unknown(value):
        raise AnswerRead("it is used as a student's value")
    return value
