"""How tensors are told and compared: their dtypes by name, their numbers as bytes, their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch import Tensor

from grader.isolation.protocol import Packed
from grader.isolation.protocol.checks import items, name_in, sizes
from grader.isolation.protocol.memory import same_bytes

_SENT = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
SENT_DTYPES = {name: getattr(torch, name) for name in (*_SENT, "bool")}
"""The dtypes whose numbers are sent."""

DTYPES = SENT_DTYPES | {
    name: getattr(torch, name)
    for name in ("complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2")
    + ("uint16", "uint32", "uint64", "qint8", "quint8", "qint32")
    if hasattr(torch, name)
}
"""The dtypes that have a name here. Of those beyond SENT_DTYPES only the form is sent."""

NAMES = {dtype: name for name, dtype in DTYPES.items()}
"""The names of DTYPES."""

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_OF_NUMPY = {SENT_DTYPES[name] for name in (*_SENT, "bool") if name != "bfloat16"}
_NUMPY_DTYPES = {dtype: numpy.dtype(NAMES[dtype]) for dtype in _OF_NUMPY}
_IN_PLACE = numpy.dtype("int16")  # of bfloat16
# Taken before a student's code can put anything else in their places.
_address = torch._C.TensorBase.data_ptr
_storage = torch._C.TensorBase.untyped_storage
_Storage: Any = torch._C.StorageBase
_storage_address: Callable[[Any], int] = _Storage.data_ptr
_storage_bytes: Callable[[Any], int] = _Storage.nbytes


def lies_in_memory(tensor: Tensor) -> bool:
    """Return whether a tensor's numbers can be read where it says that they are.

    Those of a fake or sparse tensor lie nowhere, or elsewhere; a storage can be made smaller than
    the tensors on it. Who reads such memory all the same is ended by the system.
    """
    try:
        storage = _storage(tensor)
        if tensor.is_contiguous():
            span = tensor.numel()
        else:
            strided = zip(tensor.shape, tensor.stride(), strict=True)
            span = 1 + sum((size - 1) * stride for size, stride in strided)
        if not span:
            return True
        end = (tensor.storage_offset() + span) * tensor.dtype.itemsize
        return _storage_bytes(storage) >= end and _storage_address(storage) != 0
    except RuntimeError:  # it has no storage
        return False


def array(tensor: Tensor) -> numpy.ndarray[Any, Any]:
    """Return a tensor's numbers; those of a kind that NumPy doesn't have as integers."""
    plain = tensor.detach()
    if plain.is_complex() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
        plain = torch.view_as_real(plain) if plain.is_complex() else plain
    if plain.dtype not in _OF_NUMPY:
        plain = plain.view(_BITS[plain.element_size()])
    return plain.numpy()


def array_on(
    memory: Any, dtype: torch.dtype, shape: list[int], start: int = 0
) -> numpy.ndarray[Any, Any]:
    """Return an array whose numbers lie in memory that can be written, for `tensor_on`.

    Args:
        memory: a buffer.
        dtype: one of SENT_DTYPES.
        shape: not without elements.
        start: where in the buffer they begin.
    """
    return numpy.ndarray(shape, _NUMPY_DTYPES.get(dtype, _IN_PLACE), memory, start)


def tensor_on(array: numpy.ndarray[Any, Any], dtype: torch.dtype) -> Tensor:
    """Return a tensor on the memory of an array, which lives as long as the tensor and its views.

    To make one so takes half as long as by torch's own ways, and it is a view of no other tensor.
    """
    tensor = torch.from_numpy(array)
    return tensor if dtype in _NUMPY_DTYPES else tensor.view(dtype)


def same(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors agree in dtype, shape and every byte (so NaN equals NaN).

    Args:
        a: may be one that has no bytes any more; it is like no other then.
        b: has some.
    """
    if a.dtype is not b.dtype or a.shape != b.shape or a.device != b.device:
        return False
    if a.is_meta:
        return True
    if not lies_in_memory(a):
        return False
    if _is_plain(a) and _is_plain(b):
        return same_bytes(_address(a), _address(b), a.nbytes)
    return array(a).tobytes() == array(b).tobytes()


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


def form(packed: Packed) -> Tensor:
    """Return a tensor without data (on the meta device) of the given dtype and shape.

    Raises:
        ProtocolError: they are none.
    """
    dtype, shape = items(packed, 2)
    named = DTYPES[name_in(dtype, DTYPES)]
    return torch.empty(sizes(shape), dtype=named, device="meta")


def order_in_memory(tensor: Tensor) -> list[int]:
    """Return the dimensions of a tensor, the one with the longest strides first."""
    strides: tuple[int, ...] = tensor.stride()
    return sorted(range(tensor.dim()), key=lambda dim: -strides[dim])


def in_order(tensor: Tensor, order: list[int]) -> Tensor:
    """Undo `tensor.permute(order)`."""
    return tensor.permute([order.index(dim) for dim in range(tensor.dim())])


def own(tensor: Tensor) -> Tensor:
    """Return a tensor on the same memory, from its beginning, that isn't a view of another one."""
    new = tensor.new_empty(0)
    new.set_(tensor.untyped_storage(), 0, tensor.shape, tensor.stride())
    return new
