"""The tensors of requests, where they lie in the shared memory."""

from __future__ import annotations

import functools
import math
import weakref
from typing import Any

import torch
from torch import Tensor

from grader.isolation.protocol import Packed
from grader.isolation.protocol.memory import Memory
from grader.isolation.protocol.tensors import SENT_DTYPES, array_on, tensor_on


class Inbox:
    """The part of the shared memory that brings tensors, and who still needs which.

    Args:
        memory: shared with the trusted side.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._needed: dict[int, weakref.ref[Any]] = {}
        self._released: list[int] = []

    def tensors(self, placed: Packed) -> list[Tensor]:
        """Return tensors for what a request says of their dtypes, shapes and places."""
        return [self._tensor(SENT_DTYPES[name], shape, place) for name, shape, place in placed]

    def released(self) -> list[int]:
        """Return the places that nothing refers to any more, since the last time."""
        released = self._released[:]
        del self._released[: len(released)]
        return released

    def _tensor(self, dtype: torch.dtype, shape: list[int], place: int) -> Tensor:
        size = math.prod(shape) * dtype.itemsize
        if not size:
            self._released.append(place)
            return torch.empty(shape, dtype=dtype)
        array = array_on(self._memory.part(place, size), dtype, shape)
        # The tensor's storage holds the array, as do its views, and graphs.
        forget = functools.partial(_forget, self._needed, self._released, place)
        self._needed[place] = weakref.ref(array, forget)
        return tensor_on(array, dtype)


def _forget(
    needed: dict[int, weakref.ref[Any]], released: list[int], place: int, gone: object
) -> None:
    del needed[place]
    released.append(place)
