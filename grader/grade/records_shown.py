"""Show the recorded values of a replayed test next to the values of the reference."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import numpy
from torch import Tensor

from grader.code.tensors import dtype_name, entries
from grader.errors import Mismatch
from grader.run.checks import Expected, judge_value
from grader.run.compare import kind
from grader.run.encoding import BadRecord, Decoder
from grader.run.judging import Expectation

_MOST_CHARACTERS = 600
_MOST_CHECKS = 40
_SKIPPED = "skipped, because the code is slow"


def records_shown(expected: Expectation, student: bytes, reference: bytes) -> str:
    """Return a text that shows each check: the call, the student's value and the reference's.

    The text ends after the first wrong value.

    Args:
        expected: the expected values of the test.
        student: the message of the worker that ran the student's file. It may be invalid.
        reference: the message of the worker that ran the reference.
    """
    theirs, right = _RecordReader(student), _RecordReader(reference)
    lines: list[str] = []
    for number, check in enumerate(expected.checks):
        if number == _MOST_CHECKS:
            lines.append(f"and {len(expected.checks) - number} more")
            break
        value, wanted = theirs.value(check), right.value(check)
        if check.is_claim:
            continue
        is_right = _is_right(check, value)
        lines += [f"{check.call}: {'right' if is_right else 'wrong'}", *_both(value, wanted)]
        if not is_right:
            break
    return "\n".join(lines)


class _Missing:
    """A placeholder for the value of a check that is not in the record.

    Args:
        reason: the reason why the value is missing.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason


class _RecordReader:
    """Reads the values of a worker's message in the order of the checks. The message may be
    invalid.
    """

    def __init__(self, message: bytes) -> None:
        self._left: list[Any] = []
        try:
            self._decoder = Decoder(message)
            self._left = [*self._decoder.content[1]]
        except (BadRecord, IndexError, KeyError, TypeError):
            pass

    def value(self, check: Expected) -> Any:
        """Return the recorded value of `check`, which must follow the previous check."""
        match self._left[:1]:
            case [[str(block)]] if block == check.block:
                return _Missing(_SKIPPED)
            case [[str(block)]]:
                del self._left[0]
                return self.value(check)
            case [[str(call), value]] if call == check.call:
                del self._left[0]
                try:
                    return self._decoder.decode(value)
                except BadRecord:
                    return _Missing("cannot be read")
        return _Missing("the test did not reach this call")


def _is_right(check: Expected, value: Any) -> bool:
    if isinstance(value, _Missing):
        return value.reason == _SKIPPED
    try:
        judge_value(check.judge, value, check.call)
    except Mismatch:
        return False
    return True


def _both(value: Any, wanted: Any) -> Iterator[str]:
    yield from _labelled("the code:      ", value)
    yield from _labelled("the reference: ", wanted)


def _labelled(label: str, value: Any) -> Iterator[str]:
    first, *rest = _text(value).splitlines() or [""]
    yield f"  {label}{first}"
    yield from textwrap.indent("\n".join(rest), " " * (len(label) + 2)).splitlines()


def _text(value: Any) -> str:
    """Return a short description of a value."""
    match value:
        case _Missing():
            return value.reason
        case Tensor() | numpy.ndarray():
            text = f"{kind(value)} of shape {tuple(value.shape)}, {dtype_name(value)}"
            if not (isinstance(value, Tensor) and value.is_meta):
                text += f"\n{numpy.array2string(entries(value), threshold=60, edgeitems=2)}"
        case None | bool() | int() | float() | str() | list() | tuple() | dict():
            text = repr(value)
        case _:
            text = kind(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} ..."
