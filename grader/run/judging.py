"""Run a test in a worker and in the trusted process, and judge the worker's record.

`expect` runs a test with the reference. `answer` runs the test in a worker with a student's module
and returns a message. `verdict` judges this message, check by check.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from grader.code.forbidden import Guard
from grader.code.loading import out_of_memory
from grader.course import SUBMISSION_FILE
from grader.diagnose.evidence import Shown, Source
from grader.errors import InternalError, Mismatch
from grader.result import Status
from grader.run.checks import Expected, Mode, judge_value, running
from grader.run.collecting import CollectedTest
from grader.run.encoding import BadRecord, Decoder, Encoder
from grader.run.runner import Seeds, run_in_worker, run_test, seeds_for
from grader.run.session import Session
from grader.run.verdict import TOO_LARGE, Verdict, judge, only_inspected
from grader.text import plain

_UNREADABLE = "The result of your code cannot be read."

_NOT_SHOWN = "The details are not shown, as they could reveal hidden inputs."

_MOST_TEXT = 4000
"""The maximum length of the message for the student, and of the evidence as JSON."""

_MOST_PRINTED = 20_000
_MOST_NAME = 100
_MOST_STEPS = 50

_CLAIMED = {status.value: status for status in Status if status is not Status.PASSED}
_CLAIMED[Status.INTERNAL.value] = Status.ERROR
"""Maps the status that a worker claims to the status of the verdict.

A worker can't claim the status `passed`.
"""


@dataclass(frozen=True)
class Expectation:
    """The trusted process's record of a test.

    Attributes:
        checks: the checks with their judges, in order.
        inputs: the prepared inputs, encoded for a worker.
        claims: the number of the test's claims, including the facts of `require`.
    """

    checks: tuple[Expected, ...]
    inputs: bytes
    claims: int = 0


def expect(test: CollectedTest, session: Session) -> Expectation:
    """Run a test with the reference and return the expectation that a worker's record must meet.

    Args:
        test: the test.
        session: opens the reference.

    Raises:
        InternalError: the reference fails the test, or the test makes no check.
    """
    with running(Mode("trusted")) as mode:
        result = run_test(test, session).result
    if result.status is not Status.PASSED:
        raise InternalError(f"{test.id} cannot run with the reference: {result.message}")
    if not mode.record:
        raise InternalError(f"{test.id} makes no check")
    encoder = Encoder()
    claims = mode.claims + sum(check.is_claim for check in mode.record)
    return Expectation(tuple(mode.record), encoder.message(encoder.encode(mode.inputs)), claims)


def answer(
    test: CollectedTest,
    session: Session,
    inputs: bytes,
    seeds: Seeds | None = None,
    called: list[str] | None = None,
    printed: Callable[[], str] = str,
) -> bytes:
    """Run a test in a worker and return the worker's message.

    The message contains the record, the status, the message for the student, the evidence about a
    wrong answer, and a `RunDetails`.

    Args:
        test: the test, in whose module all oracles are `UNKNOWN`.
        session: opens the student's file.
        inputs: the prepared inputs.
        seeds: the seeds of the test's random numbers; by default the session's seeds.
        called: the list that receives the name of the first forbidden function that is called.
        printed: returns the text that the student's code printed.
    """
    decoder = Decoder(inputs)
    seeds = seeds or seeds_for(test, session.seed)
    with running(Mode("worker", inputs=decoder.decode(decoder.content))) as mode:
        exception, outcome = run_in_worker(test, session, seeds, called)
    details = RunDetails(
        printed()[:_MOST_PRINTED], _steps(exception, test.function.__code__.co_filename)
    )
    del exception  # breaks a cycle: the exception's traceback refers to this frame
    shown = None if outcome.shown is None else msgspec.to_builtins(outcome.shown)
    content = [test.id, mode.record, outcome.status.value, outcome.message[:_MOST_TEXT], shown]
    return mode.encoder.message([*content, msgspec.to_builtins(details)])


class RunDetails(msgspec.Struct):
    """A worker's unverified details about the run of a test, for the instructor.

    Attributes:
        printed: the text that the student's code printed.
        steps: the traceback of the exception that ended the test. Each step contains a line number,
            a function's name, and whether the line is in the test file.
    """

    printed: str = ""
    steps: list[tuple[int, str, bool]] = []

    @classmethod
    def read(cls, message: bytes) -> RunDetails:
        """Read the details in a message. Return empty details if they are invalid."""
        try:
            claims = msgspec.convert(Decoder(message).content[5], cls)
        except (BadRecord, msgspec.ValidationError, IndexError, KeyError, TypeError):
            return cls()
        steps = [
            (line, plain(name[:_MOST_NAME]), is_test_file)
            for line, name, is_test_file in claims.steps
        ]
        return cls(plain(claims.printed[:_MOST_PRINTED]), steps[-_MOST_STEPS:])


def _steps(exception: BaseException | None, file: str) -> list[tuple[int, str, bool]]:
    """Return the steps of the traceback in the test file and in the student's file."""
    walked = [] if exception is None else [*traceback.walk_tb(exception.__traceback__)]
    frames = [(frame.f_code, line or 0) for frame, line in walked[-_MOST_STEPS:]]
    return [
        (line, code.co_name[:_MOST_NAME], code.co_filename == file)
        for code, line in frames
        if code.co_filename in (file, SUBMISSION_FILE)
    ]


def verdict(
    test: CollectedTest, expected: Expectation, message: bytes, *, quotes: bool = True
) -> Verdict:
    """Judge the checks in a worker's message in order. The first mismatch decides the verdict.

    Args:
        test: the test.
        expected: the trusted process's record of the test.
        message: the worker's message.
        quotes: whether the verdict may contain the worker's text, which could reveal hidden inputs.
    """
    texts: list[str] = []
    try:
        outcome = _judged(test, expected, Decoder(message, texts))
    except BadRecord:
        outcome = Verdict(Status.BAD_OUTPUT, _UNREADABLE)
    except Mismatch as mismatch:
        outcome = judge(mismatch, Guard(()))
    except Exception as error:
        if not out_of_memory(error):
            raise
        outcome = Verdict(Status.BAD_OUTPUT, TOO_LARGE)
    if not quotes and any(text and text in outcome.message for text in texts):
        outcome = Verdict(outcome.status, _NOT_SHOWN)
    return only_inspected(outcome) if test.inspection_only else outcome


def _judged(test: CollectedTest, expected: Expectation, decoder: Decoder) -> Verdict:
    match decoder.content:
        case [test.id, list(record), str(status), str(text), *more] if status in {*Status}:
            pass
        case _:
            raise BadRecord("the message is not a record of this test")
    decoder.texts.append(plain(text[:_MOST_TEXT]))
    if status == Status.FORBIDDEN:
        return _claimed(status, text)
    left = _judge_record(record, [*expected.checks], decoder)
    if status != Status.PASSED:
        return _claimed(status, text, *more[:1])
    if left:
        return Verdict(Status.FAILED, _not_checked(left[0]))
    return Verdict(Status.PASSED)


def _claimed(status: str, text: str, shown: Any = None) -> Verdict:
    """Return a verdict with the worker's status, message and evidence, which are not verified."""
    message = plain(text[:_MOST_TEXT]) or _UNREADABLE
    return Verdict(_CLAIMED[status], message, _evidence(shown))


def _evidence(shown: Any) -> Shown | None:
    """Read a worker's evidence about a module's parts. Return None if the evidence is invalid."""
    try:
        text = msgspec.json.encode(shown)
        if len(text) > _MOST_TEXT:
            return None
        shown_by_worker = msgspec.json.decode(text, type=Shown | None)
    except (msgspec.MsgspecError, RecursionError):
        return None
    of_parts = (Source.MISSING, Source.PARTS)
    says = (
        []
        if shown_by_worker is None
        else [(each.source, each.sentence) for each in shown_by_worker.evidence]
    )
    is_fine = all(source in of_parts and plain(text) == text for source, text in says)
    return shown_by_worker if is_fine else None


def _judge_record(record: list[Any], expected: list[Expected], decoder: Decoder) -> list[Expected]:
    """Judge the values in a record, and return the expected checks that the record lacks.

    Raises:
        Mismatch: a value is wrong, or the record contains other checks than expected.
        BadRecord: the record is invalid.
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
                raise BadRecord("the message is not a record of this test")
    return expected


def _not_checked(check: Expected) -> str:
    return f"{check.call}\nThe test did not reach this call."
