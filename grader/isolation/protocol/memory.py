"""Memory that both sides see. What goes to a worker lies in its first part, answers in the second.

The student's code works on its arguments and weights where they lie. So whether it changed them is
no question to a worker: the trusted side looks, and compares with its own.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from operator import attrgetter

import torch
from torch import Tensor

from grader.isolation.protocol import MAX_PAYLOAD

ANSWERS_AT = MAX_PAYLOAD
"""Where the second part begins."""

SIZE = 2 * MAX_PAYLOAD
"""Bytes of both parts. The system provides a page of them when it is first written."""

_memcmp = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_copy = ctypes.memmove
_address = torch._C.TensorBase.data_ptr
_size = attrgetter("nbytes")


def same_bytes(one: int, other: int, size: int) -> bool:
    """Return whether the same bytes are at two addresses."""
    return not _memcmp(one, other, size)


class Memory:
    """One side's view of the memory that it shares with the other.

    Args:
        mapping: SIZE bytes.
    """

    def __init__(self, mapping: mmap.mmap) -> None:
        self._mapping = mapping
        self._bytes = memoryview(mapping)
        self._address: int = torch.frombuffer(mapping, dtype=torch.uint8).data_ptr()

    @classmethod
    def attached(cls, handle: int | str) -> Memory:
        """Return memory that the other side has made: a descriptor, on Windows a name."""
        if sys.platform == "win32":
            return cls(mmap.mmap(-1, SIZE, tagname=str(handle)))
        return cls(mmap.mmap(int(handle), SIZE))

    def write_all(self, offsets: Iterable[int], tensors: Sequence[Tensor]) -> None:
        """Copy the bytes of contiguous tensors to these places."""
        places = (self._address + offset for offset in offsets)
        deque(map(_copy, places, map(_address, tensors), map(_size, tensors)), maxlen=0)

    def holds(self, offset: int, tensor: Tensor) -> bool:
        """Return whether a place has the very bytes of a contiguous tensor."""
        return same_bytes(self._address + offset, tensor.data_ptr(), tensor.nbytes)

    def copy(self, offset: int, size: int) -> bytearray:
        """Return a copy of what is there now: the other side can change the memory at any time."""
        return bytearray(self._bytes[offset : offset + size])

    def part(self, offset: int, size: int) -> memoryview:
        """Return a piece of the memory itself."""
        return self._bytes[offset : offset + size]

    def close(self) -> None:
        """Give it back; nothing of it can be read or written any more."""
        if not self._mapping.closed:
            del self._address  # who asks for it now gets an error, and no signal of the system's
            self._bytes.release()
            self._mapping.close()
