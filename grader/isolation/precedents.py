"""Precedents: what tests asked that passed, and what they were answered.

What a test does hangs on the answers that it gets and on nothing else, for its inputs are drawn
from a seed. So code passes a test if it answers all that the test asks bit for bit as code did that
passed, and then the test itself need not run. There are few ways to write a formula: many answers
of a class have been given before.

A precedent is what one test asked, request by request, with the answers. `ahead` asks it again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from grader.isolation.protocol import Header, Packed
from grader.isolation.protocol.frames import read_header, written
from grader.isolation.protocol.tensors import array, same

MOST_ASKED = 1 << 22
"""How many bytes one test may ask, to be kept: they are."""

MOST_ANSWERED = 1 << 25
"""How many bytes a test may be answered, of which a digest is kept: that takes time."""

_MOST_BYTES = 1 << 27
_MOST_WAYS = 16
"""How many bytes all precedents may take, and how many ways there may be to pass a test."""

_BESIDE = 1000
"""Bytes that a step takes beside its numbers and texts, about."""

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


class Contents:
    """What lies in the memory that a worker shares, as far as a test has put it there."""

    def __init__(self) -> None:
        self._tensors: dict[int, Tensor] = {}

    def put(self, placed: Sequence[Packed], tensors: Sequence[Tensor]) -> None:
        """Take note of a request's tensors and their places, as the request tells them."""
        self._tensors |= zip((place for _, _, place in placed), tensors, strict=True)

    def at(self, place: int) -> Tensor:
        """Return what was put at a place last."""
        return self._tensors[place]

    def are_held(self, holds: Callable[[int, Tensor], bool]) -> bool:
        """Return whether all of it is there as it was put, which is more than a test looks at."""
        return all(map(holds, self._tensors, self._tensors.values()))


class Record:
    """Writes down what a test asks and what it is answered, as long as nothing else matters.

    What else would matter is what the code changes in the memory: the test would go on with that.

    Args:
        holds: tells whether a place in the worker's memory still has the bytes of a tensor.

    Attributes:
        names: the names that the test looks up in the file, and whether they are there.
    """

    def __init__(self, holds: Callable[[int, Tensor], bool]) -> None:
        self.names: dict[str, bool] = {}
        self._holds = holds
        self._steps: list[Step] = []
        self._contents = Contents()
        self._asked = self._answered = 0
        self._is_fit = True

    def add(
        self,
        request: Header,
        tensors: Sequence[Tensor],
        answer: Header,
        payload: bytearray,
        *,
        is_last: bool,
    ) -> None:
        """Add copies of a request and its answer.

        Args:
            request: its header.
            tensors: the request's.
            answer: its header.
            payload: the bytes of the answer's tensors.
            is_last: whether the worker has been asked for nothing since then.
        """
        self._asked += sum(each.nbytes for each in tensors)
        self._answered += len(payload)
        self._is_fit &= self._asked <= MOST_ASKED and self._answered <= MOST_ANSWERED
        if self._is_fit:
            copies = [tensor.clone() for tensor in tensors]
            step = Step(_asked(request), request["free"], copies, told(answer, payload))
            self._steps.append(step)
            self._contents.put(request["placed"], copies)
            self._is_fit = not is_last or self._contents.are_held(self._holds)

    def finished(self) -> Precedent | None:
        """Return all of it; None if it takes much room, or other things matter."""
        return Precedent(self._steps, {**self.names}) if self._is_fit else None


class Ways:
    """The ways in which one test was passed."""

    def __init__(self) -> None:
        self._known: deque[Precedent] = deque(maxlen=_MOST_WAYS)
        self.is_given_up = False

    def of_file(self, names: Collection[str]) -> list[Precedent]:
        """Return the ways that a file with these names may go."""
        return [way for way in self._known if way.has(names)]

    def add(self, way: Precedent) -> None:
        """Keep one more; the oldest goes where there are many."""
        if not self.is_given_up:
            self._known.append(way)

    def give_up(self) -> None:
        """Keep none from now on: after the same answers the test asked something else."""
        self._known.clear()
        self.is_given_up = True


class Precedents:
    """The precedents of tests. When there is no room any more, all are forgotten."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._ways: defaultdict[Hashable, Ways] = defaultdict(Ways)
        self._tensors: dict[Hashable, Tensor] = {}
        self._room = _MOST_BYTES

    def of(self, test: Hashable) -> Ways:
        """Return the ways in which a test was passed."""
        return self._ways[test]

    def keep(self, test: Hashable, record: Record) -> None:
        """Keep one more way to pass a test, if it can be kept."""
        way = record.finished()
        if way is not None:
            self._ways[test].add(way._replace(steps=[*map(self._kept, way.steps)]))
        if self._room < 0:
            self._forget()

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
