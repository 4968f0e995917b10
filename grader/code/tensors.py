"""Common functions for tensors and arrays."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, TypeGuard

import numpy
import torch
from torch import Tensor, nn

Array = numpy.ndarray[Any, Any]


def is_array(value: object) -> TypeGuard[Array]:
    """Return whether a value is a NumPy array. A replaced `__class__` doesn't change the result."""
    return isinstance(value, numpy.ndarray) and issubclass(type(value), numpy.ndarray)


def dtype_name(values: Tensor | Array) -> str:
    """Return the name of a tensor's or an array's dtype, such as "float32"."""
    return str(values.dtype).removeprefix("torch.")


def is_float(values: Tensor | Array) -> bool:
    """Return whether the entries are floating point numbers."""
    if isinstance(values, numpy.ndarray):
        return bool(values.dtype.kind == "f")
    return bool(values.is_floating_point())


def parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return a module's parameters by name, including all names of a shared layer."""
    return dict(module.named_parameters(remove_duplicate=False))


def entries(values: Tensor | Array) -> Array:
    """Return the entries as a NumPy array, in float64 if they are floating point numbers.

    The array may share memory with `values`, so do not change it.
    """
    if isinstance(values, numpy.ndarray):
        plain = numpy.ndarray.view(values, numpy.ndarray)
        return numpy.ndarray.astype(plain, numpy.float64, copy=False) if is_float(plain) else plain
    tensor: Any = values.detach()
    array: Array = (tensor.double() if is_float(tensor) else tensor).numpy(force=True)
    return array


# Looked up before student code can replace them.
_address = torch._C.TensorBase.data_ptr
_writings = torch._C.TensorBase._version.__get__  # type: ignore[attr-defined]


class Results:
    """The results of calls, to detect a call that overwrites an earlier result.

    Attributes:
        found: the results, in the order of the calls.
        some_overwritten: whether a call has overwritten the result of an earlier call.
    """

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.some_overwritten = False
        self._versions: dict[int, int] = {}

    def add(self, result: Any) -> None:
        """Add the result of a call.

        A tensor counts the writes to its memory. Results are allowed to share memory, for example
        parts of one cached mask, unless a call wrote to this memory in between.
        """
        self.found.append(result)
        if type(result) not in (Tensor, nn.Parameter):  # a subclass may return anything
            return
        try:
            place, written = _address(result), _writings(result)
        except Exception:  # it has no memory or no count of writes
            return
        if place and self._versions.setdefault(place, written) != written:
            self.some_overwritten = True


# From the C library's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# More than the tests' largest tensors take together; and a value for versions that refuse this.
_KEPT_BYTES, _KEPT_AT_LEAST = 1 << 29, 1 << 25


def keep_memory() -> None:
    """Let the C library keep the memory of freed tensors for new tensors. Linux only.

    By default, the C library returns large blocks to the system and requests them again, page by
    page. This takes up to a sixth of the tests' time.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):  # not every C library has it
            for threshold in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
                any(library.mallopt(threshold, size) for size in (_KEPT_BYTES, _KEPT_AT_LEAST))
