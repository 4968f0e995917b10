"""The tensors of requests, where they lie in the shared memory."""

from __future__ import annotations

import functools
import math
import weakref

import torch
from torch import Tensor

from grader.isolation.protocol import Packed
from grader.isolation.protocol.memory import Memory
from grader.isolation.protocol.tensors import SENT_DTYPES


class Inbox:
    """The part of the shared memory that brings tensors, and who still needs which.

    Args:
        memory: shared with the trusted side.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._needed: dict[int, weakref.ref[memoryview]] = {}
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
        part = self._memory.part(place, size)
        # The tensor's storage holds this piece of memory, as do its views, and graphs.
        forget = functools.partial(_forget, self._needed, self._released, place)
        self._needed[place] = weakref.ref(part, forget)
        flat = torch.frombuffer(part, dtype=dtype)
        # Not a view of the flat one: student code could tell that from a tensor of its own.
        return own(flat.view(shape))


def own(tensor: Tensor) -> Tensor:
    """Return a tensor on the same memory, from its beginning, that isn't a view of another one."""
    new = tensor.new_empty(0)
    new.set_(tensor.untyped_storage(), 0, tensor.shape, tensor.stride())
    return new


def _forget(
    needed: dict[int, weakref.ref[memoryview]], released: list[int], place: int, gone: object
) -> None:
    del needed[place]
    released.append(place)
