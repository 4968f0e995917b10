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
    """Return whether a value is a NumPy array. An object that fakes its `__class__` is rejected."""
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
    """Return a module's parameters by name. A parameter of a shared layer has several names."""
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


# These functions are stored here before student code can replace them.
_address = torch._C.TensorBase.data_ptr
_writings = torch._C.TensorBase._version.__get__  # type: ignore[attr-defined]


class Results:
    """The results of several calls. The class detects a call that overwrites an earlier result.

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

        Results may share memory, for example if they are parts of one cached mask. torch counts the
        writes to a tensor's memory. If the count has changed since an earlier result in the same
        memory, that result was overwritten.
        """
        self.found.append(result)
        if type(result) not in (Tensor, nn.Parameter):  # a subclass may return anything
            return
        try:
            place, written = _address(result), _writings(result)
        except Exception:  # the tensor has no memory or no count of writes
            return
        if place and self._versions.setdefault(place, written) != written:
            self.some_overwritten = True


# Numbers of options in the C library's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# The first size is larger than all tensors of a test. The second size is used if the C library
# refuses the first.
_KEPT_BYTES, _KEPT_AT_LEAST = 1 << 29, 1 << 25


def keep_memory() -> None:
    """On Linux, make the C library reuse the memory of freed tensors for new tensors.

    By default, it returns large blocks to the system and requests them again. This takes up to a
    sixth of the tests' time.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):  # some C libraries lack this function
            for threshold in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
                any(library.mallopt(threshold, size) for size in (_KEPT_BYTES, _KEPT_AT_LEAST))
