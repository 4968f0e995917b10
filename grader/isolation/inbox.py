"""What lies in the memory that a worker shares: the tensors of requests, for as long as it needs.

The trusted side chooses the places. A worker says which it doesn't need any more, since students'
code may keep an argument, and torch does for a gradient. If that is a lie, what the worker still
needs is overwritten, and nobody else is harmed.
"""

from __future__ import annotations

from collections import defaultdict

from torch import Tensor

from grader.isolation.protocol import Packed, ProtocolError
from grader.isolation.protocol.checks import items
from grader.isolation.protocol.memory import ANSWERS_AT, Memory
from grader.isolation.protocol.tensors import NAMES

_SMALLEST = 64


class Full(Exception):  # noqa: N818  (an event)
    """There is no place left."""


class Inbox:
    """The part of the shared memory that goes to the worker.

    Args:
        memory: what is shared with it.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._end = 0
        self._sizes: dict[int, int] = {}
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    def put(self, tensors: list[Tensor]) -> list[Packed]:
        """Write contiguous tensors; return for each its dtype, shape and place.

        Raises:
            Full: they don't fit beside what the worker still needs.
        """
        places = [self._place(tensor.nbytes) for tensor in tensors]
        self._memory.write_all(places, tensors)
        return [[NAMES[t.dtype], t.shape, place] for t, place in zip(tensors, places, strict=True)]

    def _place(self, count: int) -> int:
        size = max(_SMALLEST, 1 << (count - 1).bit_length())
        if self._free[size]:
            place = self._free[size].pop()
        else:
            place, self._end = self._end, self._end + size
            if self._end > ANSWERS_AT:
                self._end = place
                raise Full
        self._sizes[place] = size
        return place

    def holds(self, place: int, tensor: Tensor) -> bool:
        """Return whether a place still has the bytes of a contiguous tensor."""
        return self._memory.holds(place, tensor)

    def release(self, places: Packed) -> None:
        """Take back the places that the worker doesn't need any more.

        Raises:
            ProtocolError: it never had them.
        """
        for place in items(places):
            size = self._sizes.pop(place, 0) if type(place) is int else 0
            if not size:
                raise ProtocolError("a place that was not given")
            self._free[size].append(place)
