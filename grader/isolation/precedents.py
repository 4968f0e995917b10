"""Precedents: what tests asked that passed, and what they were answered.

What a test does hangs on the answers that it gets and on nothing else, for its inputs are drawn
from a seed. So code passes a test if it answers all that the test asks bit for bit as code did that
passed, and then the test itself need not run. There are few ways to write a formula: many answers
of a class have been given before.

A precedent is what one test asked, request by request, with the answers. `ahead` asks it again.
"""

from __future__ import annotations

import functools
import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from grader.isolation.protocol import Packed
from grader.isolation.protocol.memory import ANSWERS_AT, Memory
from grader.isolation.protocol.tensors import array, same

MOST_ASKED = 1 << 22
"""How many bytes one test may ask, to be kept: they are."""

MOST_ANSWERED = 1 << 25
"""How many bytes a test may be answered, to be kept: a digest of them takes time."""

_MOST_BYTES = 1 << 27
_MOST_WAYS = 16
"""How many bytes all precedents may take, and how many ways there may be to pass a test."""

_MOST_PAYLOADS = 1 << 26
"""How many bytes of answers may be kept themselves: they are compared sooner than a digest."""

HoldsAll = Callable[[Mapping[int, Tensor]], bool]

_BESIDE = 1000
"""Bytes that a step takes beside its numbers and texts, about."""


class Asked(NamedTuple):
    """A request.

    Attributes:
        text: what it asks, without what it says to one worker only.
        free: numbers of what the worker may forget.
        tensors: the request's.
    """

    text: bytes
    free: list[int]
    tensors: list[Tensor]

    def is_same(self, other: Asked) -> bool:
        """Return whether another request asks the same; its tensors may have no bytes any more."""
        if len(other.tensors) != len(self.tensors) or other.text != self.text:
            return False
        return all(map(same, other.tensors, self.tensors))


class Answered(NamedTuple):
    """An answer, the same only as one that is the same bit for bit.

    Attributes:
        text: what it says; not what it means, since to Python `True` equals `1`.
        payload: the bytes of its tensors.
    """

    text: bytes
    payload: bytearray


class Told(NamedTuple):
    """What is kept of an answer.

    Attributes:
        text: what it says.
        digest: of the bytes of its tensors.
        payload: those bytes, if there was room.
    """

    text: bytes
    digest: bytes
    payload: bytes | None


class Reply:
    """An answer as it lies before both sides, until the next request is sent.

    Args:
        text: what it says.
        size: how many bytes its tensors have.
        memory: where they lie.

    Attributes:
        text: the same.
        size: the same.
    """

    def __init__(self, text: bytes, size: int, memory: Memory) -> None:
        self.text = text
        self.size = size
        self._memory = memory

    def is_same(self, told: Told) -> bool:
        """Return whether this is an answer of which something is kept."""
        if self.text != told.text:
            return False
        if told.payload is None:
            return self._digest == told.digest
        return self.size == len(told.payload) and self._memory.has(ANSWERS_AT, told.payload)

    @functools.cached_property
    def payload(self) -> bytearray:
        """The bytes of its tensors as they are when one asks first, whatever comes then."""
        return self._memory.copy(ANSWERS_AT, self.size)

    @functools.cached_property
    def _digest(self) -> bytes:
        return _digest(self.payload)


class Step(NamedTuple):
    """A request, and what is kept of its answer."""

    asked: Asked
    answer: Told


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

    def are_held(self, holds_all: HoldsAll) -> bool:
        """Return whether all of it is there as it was put, which is more than a test looks at."""
        return holds_all(self._tensors)


class Record:
    """Writes down what a test asks and what it is answered, as long as nothing else matters.

    What else would matter is what the code changes in the memory: the test would go on with that.

    Args:
        holds_all: tells whether places in the worker's memory still have the bytes of tensors.

    Attributes:
        names: the names that the test looks up in the file, and whether they are there.
    """

    def __init__(self, holds_all: HoldsAll) -> None:
        self.names: dict[str, bool] = {}
        self._holds_all = holds_all
        self._steps: list[Step] = []
        self._contents = Contents()
        self._asked = self._answered = 0
        self._is_fit = True

    def add(
        self, asked: Asked, placed: Sequence[Packed], answer: Answered, *, is_last: bool
    ) -> None:
        """Add copies of a request and its answer.

        Args:
            asked: the request.
            placed: where its tensors lie.
            answer: the answer.
            is_last: whether the worker has been asked for nothing since then.
        """
        self._asked += sum(each.nbytes for each in asked.tensors)
        self._answered += len(answer.payload)
        self._is_fit &= self._asked <= MOST_ASKED and self._answered <= MOST_ANSWERED
        if self._is_fit:
            copies = [tensor.clone() for tensor in asked.tensors]
            kept = Told(answer.text, _digest(answer.payload), bytes(answer.payload))
            self._steps.append(Step(asked._replace(tensors=copies), kept))
            self._contents.put(placed, copies)
            self._is_fit = not is_last or self._contents.are_held(self._holds_all)

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
        self._payloads: dict[bytes, bytes] = {}
        self._room, self._room_of_payloads = _MOST_BYTES, _MOST_PAYLOADS

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
        asked, answer = step
        self._room -= len(asked.text) + len(answer.text) + _BESIDE
        tensors = [*map(self._shared, asked.tensors)]
        payload = self._payload(answer)
        return Step(asked._replace(tensors=tensors), answer._replace(payload=payload))

    def _payload(self, answer: Told) -> bytes | None:
        """Return the bytes of an answer's tensors, if there is room for them."""
        payload = answer.payload
        if payload is not None and answer.digest not in self._payloads:
            if len(payload) > self._room_of_payloads:
                return None
            self._room_of_payloads -= len(payload)
            self._payloads[answer.digest] = payload
        return self._payloads.get(answer.digest)

    def _shared(self, tensor: Tensor) -> Tensor:
        """Return a tensor with the same numbers, which most ways to pass a test have in common."""
        key = tensor.dtype, tensor.shape, _digest(array(tensor))
        if key not in self._tensors:
            self._tensors[key] = tensor
            self._room -= tensor.nbytes
        return self._tensors[key]


def _digest(numbers: Any) -> bytes:
    return hashlib.blake2b(numbers, digest_size=16).digest()
