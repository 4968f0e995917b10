"""Precedents: what tests asked that passed, and what they were answered.

What a test does hangs on the answers that it gets and on nothing else, for its inputs are drawn
from a seed. So code passes a test if it answers all that the test asks bit for bit as code did that
passed, and then the test itself need not run. There are few ways to write a formula: most answers
of a class have been given before.

A precedent is what one test asked, request by request, with the answers. `ahead` asks it again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from grader.isolation.protocol import Header
from grader.isolation.protocol.frames import read_header, written
from grader.isolation.protocol.tensors import array, same

_MOST_BYTES = 1 << 27
_BESIDE = 1000
"""How many bytes all precedents may take; and what a step takes beside its numbers, about."""

_MOST_OF_A_TEST = 1 << 22
_MOST_WAYS = 16
"""How many bytes one test may ask and be answered, and how many ways to pass it are kept."""

_OF_WORKER = ("id", "free", "placed", "tensors", "begins")
"""What a request says to one worker only."""


def told(answer: Header, payload: bytearray) -> bytes:
    """Return what an answer says, the same only for answers that are the same bit for bit.

    To Python `True` equals `1`, so it is text, without what one worker only says, and a digest.

    Args:
        answer: its header.
        payload: the bytes of its tensors.
    """
    lasting = {name: value for name, value in answer.items() if name not in ("id", "released")}
    return _digest(payload) + written(lasting)


class Step(NamedTuple):
    """A request, and its answer.

    Attributes:
        request: its header as text, without what it says to one worker only.
        free: numbers of what the worker may forget.
        tensors: the request's.
        answer: what `told` says of the answer.
    """

    request: bytes
    free: list[int]
    tensors: list[Tensor]
    answer: bytes

    def asks(self, header: Header, tensors: Sequence[Tensor]) -> bool:
        """Return whether a request is this one."""
        if len(tensors) != len(self.tensors) or not all(map(same, tensors, self.tensors)):
            return False
        return _asked(header) == self.request

    def header(self) -> Header:
        """Return the request's header, to be sent to another worker."""
        return read_header(self.request) | {"free": self.free}


class Precedent(NamedTuple):
    """What a test asked, and what it was answered.

    Attributes:
        steps: the requests, in order.
        names: the names that it looked up in the file, and whether they were there.
    """

    steps: Sequence[Step]
    names: Mapping[str, bool]

    def has(self, names: Collection[str]) -> bool:
        """Return whether a file with these names has what the test looked for, and no more."""
        return all((name in names) is found for name, found in self.names.items())


class Record:
    """Writes down what a test asks and what it is answered; nothing, if it takes much room.

    Attributes:
        names: the names that the test looks up in the file, and whether they are there.
    """

    def __init__(self) -> None:
        self.names: dict[str, bool] = {}
        self._steps: list[Step] = []
        self._size = 0

    def add(
        self, header: Header, tensors: Sequence[Tensor], answer: Header, payload: bytearray
    ) -> None:
        """Add copies of a request and its answer."""
        self._size += sum(each.nbytes for each in tensors) + len(payload)
        if self._size <= _MOST_OF_A_TEST:
            copies = [tensor.clone() for tensor in tensors]
            step = Step(_asked(header), header["free"], copies, told(answer, payload))
            self._steps.append(step)

    def finished(self) -> Precedent | None:
        """Return all of it; None if it takes much room."""
        return Precedent(self._steps, self.names) if self._size <= _MOST_OF_A_TEST else None


class Ways:
    """The ways in which one test was passed.

    Attributes:
        may_grow: whether one more would be kept.
    """

    def __init__(self) -> None:
        self._known: list[Precedent] = []
        self.may_grow = True

    def of_file(self, names: Collection[str]) -> list[Precedent]:
        """Return the ways that a file with these names may go."""
        return [way for way in self._known if way.has(names)]

    def add(self, way: Precedent) -> None:
        """Keep one more."""
        self._known.append(way)
        self.may_grow = len(self._known) < _MOST_WAYS

    def give_up(self) -> None:
        """Keep none from now on: after the same answers the test asked something else."""
        self._known, self.may_grow = [], False


class Precedents:
    """The precedents of tests, as long as there is room. The first ones stay."""

    def __init__(self) -> None:
        self._ways: defaultdict[Hashable, Ways] = defaultdict(Ways)
        self._tensors: dict[Hashable, Tensor] = {}
        self._room = _MOST_BYTES

    def of(self, test: Hashable) -> Ways:
        """Return the ways in which a test was passed."""
        return self._ways[test]

    def keep(self, test: Hashable, record: Record) -> None:
        """Keep one more way to pass a test, unless there are many or there is no room."""
        way, ways = record.finished(), self._ways[test]
        if way is not None and ways.may_grow and self._room > 0:
            ways.add(way._replace(steps=[*map(self._kept, way.steps)]))

    def _kept(self, step: Step) -> Step:
        self._room -= len(step.request) + len(step.answer) + _BESIDE
        return step._replace(tensors=[*map(self._shared, step.tensors)])

    def _shared(self, tensor: Tensor) -> Tensor:
        """Return a tensor with the same numbers, which most ways to pass a test have in common."""
        key = tensor.dtype, tensor.shape, _digest(array(tensor))
        if key not in self._tensors:
            self._tensors[key] = tensor
            self._room -= tensor.nbytes
        return self._tensors[key]


def _asked(header: Header) -> bytes:
    """Return what a request asks, as text."""
    return written({n: value for n, value in header.items() if n not in _OF_WORKER})


def _digest(numbers: Any) -> bytes:
    return hashlib.blake2b(numbers, digest_size=16).digest()
