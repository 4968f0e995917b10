"""Runs a test as a worker and on the trusted side, and judges the worker's record.

`expect` runs a test with the reference. `answer` runs it with a student's module and returns a
message; in that process nothing is right or wrong. `verdict` compares the two, check by check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grader.code.forbidden import Guard
from grader.errors import InternalError, Mismatch
from grader.result import Status
from grader.run.checks import Expected, Mode, judge_value, running
from grader.run.encoding import BadRecord, Decoder, Encoder
from grader.run.records import CollectedTest
from grader.run.runner import run_test
from grader.run.session import Session
from grader.run.verdict import Verdict, judge, only_inspected

_UNREADABLE = "What came back from your code cannot be read."

_CLAIMED = {status.value: status for status in Status if status is not Status.PASSED}
_CLAIMED[Status.INTERNAL.value] = Status.ERROR
"""How a worker may say that a test ended: never passed, and never by the grader's own error."""


@dataclass(frozen=True)
class Expectation:
    """The trusted side's record of a test.

    Attributes:
        checks: how the values of a worker are judged, in order.
        inputs: the prepared inputs, encoded for a worker.
    """

    checks: tuple[Expected, ...]
    inputs: bytes


def expect(test: CollectedTest, session: Session) -> Expectation:
    """Run a test with the reference and return what a worker's record is judged by.

    Args:
        test: the test.
        session: opens the reference.

    Raises:
        InternalError: the reference does not get through the test, or there is no check in it.
    """
    with running(Mode("trusted")) as mode:
        found = run_test(test, session).result
    if found.status is not Status.PASSED:
        raise InternalError(f"{test.id} cannot run with the reference: {found.message}")
    if not mode.record:
        raise InternalError(f"{test.id} makes no check")
    encoder = Encoder()
    return Expectation(tuple(mode.record), encoder.message(encoder.encode(mode.inputs)))


def answer(test: CollectedTest, session: Session, inputs: bytes) -> bytes:
    """Run a test in a worker and return its message: record and ending.

    Args:
        test: the test, in whose module all oracles are unknown.
        session: opens the student's file.
        inputs: the prepared inputs.
    """
    decoder = Decoder(inputs)
    with running(Mode("worker", inputs=decoder.decode(decoder.content))) as mode:
        found = run_test(test, session).result
    return mode.encoder.message([test.id, mode.record, found.status.value, found.message])


def verdict(test: CollectedTest, expected: Expectation, message: bytes) -> Verdict:
    """Judge a worker's message, check by check; the first mismatch counts."""
    try:
        found = _judged(test, expected, Decoder(message))
    except BadRecord:
        found = Verdict(Status.BAD_OUTPUT, _UNREADABLE)
    except Mismatch as mismatch:
        found = judge(mismatch, Guard(()))
    return only_inspected(found) if test.inspection_only else found


def _judged(test: CollectedTest, expected: Expectation, decoder: Decoder) -> Verdict:
    match decoder.content:
        case [test.id, list(record), str(status), str(text)] if status in {*Status}:
            pass
        case _:
            raise BadRecord("it is no record of this test")
    if status == Status.FORBIDDEN:
        return Verdict(Status.FORBIDDEN, text)
    left = _judge_record(record, [*expected.checks], decoder)
    if status != Status.PASSED:
        return Verdict(_CLAIMED[status], text)
    if left:
        return Verdict(Status.FAILED, _not_checked(left[0]))
    return Verdict(Status.PASSED)


def _judge_record(record: list[Any], expected: list[Expected], decoder: Decoder) -> list[Expected]:
    """Judge the values of a record, and return the checks that are missing in it.

    Raises:
        Mismatch: a value is wrong, or the record has other checks.
        BadRecord: it is no record.
    """
    for each in record:
        match each:
            case [str(block)]:
                while expected and block and expected[0].block == block:
                    del expected[0]
            case [str(call), value] if expected:
                check = expected.pop(0)
                if check.call != call:
                    raise Mismatch(_not_checked(check))
                judge_value(check.judge, decoder.decode(value), call)
            case _:
                raise BadRecord("it is no record of this test")
    return expected


def _not_checked(check: Expected) -> str:
    return f"{check.call}\nThe test did not get to this call."
