"""Encode the values of a worker as bytes, without pickle; decode them in the trusted process.

A message contains a JSON text, followed by the numbers of its tensors. A value can be None, a bool,
int, float, str, tensor, array, list, tuple or dict. Any other value is replaced by its type's name.
A tensor without ordinary numbers (sparse, quantized, on the meta device, without memory) is
replaced by its dtype and shape.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy
import torch
from torch import Tensor

from grader.code.tensors import Array, dtype_name

MOST_BYTES = 32 << 20
"""The maximum number of bytes of all numbers in one message."""

MOST_TEXT = 2 << 20
"""The maximum number of bytes of the JSON in one message.

The decoded JSON takes up to 25 times as much memory.
"""

MOST_PARTS = 50_000
"""The maximum number of values in one message.

The encoder also counts each character of a string as a value.
"""

DEEPEST = 16
"""The maximum depth of nested lists, tuples and dicts."""

_LONGEST_NAME = 100
_MOST_DIMENSIONS = 64
_SIZES = struct.Struct("<II")

_FLOATS = ("float64", "float32", "float16", "complex128", "complex64")
_OTHERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
_ARRAYS = (*_FLOATS, *_OTHERS)
_TENSORS = (*_ARRAYS, "bfloat16")


class BadRecord(Exception):  # noqa: N818  (the message is wrong, not the program)
    """A value is too large for a message, or the bytes of a message are invalid."""


# Encoding, in a worker


class Encoder:
    """Encodes the values of one message.

    Attributes:
        numbers: the bytes of each encoded tensor or array, in order.
    """

    def __init__(self) -> None:
        self.numbers: list[bytes] = []
        self._bytes, self._parts = MOST_BYTES, MOST_PARTS

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Convert a value to objects that JSON supports.

        The bytes of its tensors and arrays are appended to `numbers`.

        Raises:
            BadRecord: the message would be too large.
        """
        self._spend(1 + (len(value) if isinstance(value, str) else 0), depth)
        match value:
            case None | bool():
                return value
            case int() if type(value) is int and abs(value) < 1 << 63:
                return value
            case float() if type(value) is float:
                return ["float", value.hex()]
            case str() if type(value) is str:
                return value.encode(errors="backslashreplace").decode()
            case Tensor():
                return self._tensor(value)
            case numpy.ndarray() if value.dtype.name in _ARRAYS:
                return self._array(value)
            case list() | tuple():
                kind = "list" if isinstance(value, list) else "tuple"
                return [kind, *(self.encode(each, depth + 1) for each in value)]
            case dict() if all(type(name) in (str, int) for name in value):
                return ["dict", *([name, self.encode(v, depth + 1)] for name, v in value.items())]
        return ["type", type(value).__name__[:_LONGEST_NAME]]

    def _spend(self, parts: int, depth: int) -> None:
        self._parts -= parts
        if self._parts < 0 or depth > DEEPEST:
            raise BadRecord("the message has too many parts")

    def _tensor(self, tensor: Tensor) -> Any:
        name, shape = dtype_name(tensor), [*map(int, tensor.shape)]
        if tensor.is_meta or tensor.layout is not torch.strided or name not in _TENSORS:
            return ["form", name, shape]
        if self._reserve(math.prod(shape) * tensor.itemsize):
            if not _is_in_memory(tensor):
                return ["form", name, shape]
            numbers = tensor.detach().resolve_conj().resolve_neg().cpu()
            flat = numbers.clone(memory_format=torch.contiguous_format).reshape(-1)
            self.numbers.append(flat.view(torch.uint8).numpy().tobytes())
        return ["tensor", name, shape]

    def _array(self, array: Array) -> Any:
        if self._reserve(array.nbytes):
            self.numbers.append(numpy.asarray(array, dtype=array.dtype.name).tobytes())
        return ["array", array.dtype.name, [*array.shape]]

    def _reserve(self, size: int) -> bool:
        """Reserve `size` bytes of the message, and return whether `size` is positive.

        Raises:
            BadRecord: the message would be too large. For example, an expanded tensor can have a
                terabyte.
        """
        self._bytes -= size
        if self._bytes < 0:
            raise BadRecord("the message is too large")
        return size > 0

    def message(self, content: Any) -> bytes:
        """Return the bytes of a message. Values in `content` must be results of `encode`."""
        text, numbers = msgspec.json.encode(content), b"".join(self.numbers)
        return _SIZES.pack(len(text), len(numbers)) + text + numbers


def _is_in_memory(tensor: Tensor) -> bool:
    """Return whether a tensor's storage contains all its entries.

    If the storage is too small, reading the entries would crash Python.
    """
    strided = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in strided)
    return tensor.untyped_storage().nbytes() >= (last + 1) * tensor.itemsize


# Decoding, in the trusted process


class Decoder:
    """Decodes the values of one message.

    Args:
        message: bytes that student code may have written.
        texts: the list to which `decode` appends decoded strings and the names of types.

    Attributes:
        content: the content of the message. Pass the encoded values in it to `decode`.
        texts: the decoded strings and the names of types.

    Raises:
        BadRecord: the message is invalid.
    """

    def __init__(self, message: bytes, texts: list[str] | None = None) -> None:
        self.texts = [] if texts is None else texts
        try:
            text, numbers = _SIZES.unpack_from(message)
            if _SIZES.size + text + numbers != len(message):
                raise BadRecord("the size of the message is wrong")
            if text > MOST_TEXT or numbers > MOST_BYTES:
                raise BadRecord("the message is too large")
            self.content = msgspec.json.decode(message[_SIZES.size :][:text])
        except (struct.error, msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise BadRecord("the message cannot be read") from error
        self._numbers, self._at = memoryview(message)[_SIZES.size + text :], 0
        self._parts = MOST_PARTS

    def decode(self, tree: Any, depth: int = 0) -> Any:
        """Return the value for which `Encoder.encode` returned `tree`.

        Raises:
            BadRecord: `tree` is invalid, or the message has too many values.
        """
        self._parts -= 1
        if self._parts < 0 or depth > DEEPEST:
            raise BadRecord("the message has too many parts")
        match tree:
            case str():
                self.texts.append(tree)
                return tree
            case None | bool() | int():
                return tree
            case ["float", str(text)]:
                return _float(text)
            case ["tensor", str(dtype), list(shape)] if dtype in _TENSORS:
                return self._tensor(getattr(torch, dtype), _shape(shape))
            case ["array", str(dtype), list(shape)] if dtype in _ARRAYS:
                return self._array(numpy.dtype(dtype), _shape(shape))
            case ["form", str(dtype), list(shape)]:
                return _without_numbers(dtype, _shape(shape))
            case ["list" | "tuple" as kind, *parts]:
                values = [self.decode(part, depth + 1) for part in parts]
                return values if kind == "list" else tuple(values)
            case ["dict", *pairs]:
                return dict(self._pair(pair, depth) for pair in pairs)
            case ["type", str(name)]:
                self.texts.append(name)
                return stand_in(name)
        raise BadRecord("the message has a value of an unknown kind")

    def _pair(self, pair: Any, depth: int) -> tuple[str | int, Any]:
        match pair:
            case [str() | int() as name, value]:
                return name, self.decode(value, depth + 1)
        raise BadRecord("the message has a value of an unknown kind")

    def _tensor(self, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
        data = self._next_bytes(math.prod(shape) * dtype.itemsize)
        if not data:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(data, dtype=dtype).reshape(shape)

    def _array(self, dtype: numpy.dtype[Any], shape: Sequence[int]) -> Array:
        data = self._next_bytes(math.prod(shape) * dtype.itemsize)
        return numpy.frombuffer(data, dtype=dtype).reshape(shape)

    def _next_bytes(self, size: int) -> bytearray:
        """Return a writable copy of the next `size` bytes of the numbers."""
        data = bytearray(self._numbers[self._at : self._at + size])
        self._at += size
        if len(data) != size:
            raise BadRecord("the message lacks numbers")
        return data


def _float(text: str) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        raise BadRecord("the message has a value of an unknown kind") from None


def _shape(sizes: list[Any]) -> list[int]:
    """Check the shape of a tensor, and return it unchanged.

    Raises:
        BadRecord: a size is invalid, or the tensor is too large for torch's 64-bit counters.
    """
    fits = len(sizes) <= _MOST_DIMENSIONS and all(type(n) is int and n >= 0 for n in sizes)
    if not fits or math.prod(max(size, 1) for size in sizes) >= 1 << 48:
        raise BadRecord("the message has a value of an unknown kind")
    return sizes


def _without_numbers(dtype: str, shape: list[int]) -> Any:
    known = getattr(torch, dtype, None)
    if not isinstance(known, torch.dtype):
        raise BadRecord("the message has a value of an unknown kind")
    return torch.empty(shape, dtype=known, device="meta")


def stand_in(name: str) -> Any:
    """Return an object whose type is called `name`. It represents a value that was not encoded.

    Raises:
        BadRecord: a type can't have this name.
    """
    if not name.isidentifier() or len(name) > _LONGEST_NAME:
        raise BadRecord("the message has a value of an unknown kind")
    return type(name, (), {})()


def round_trip(value: Any) -> Any:
    """Encode and decode a value, and return the copy that the trusted process would receive.

    Raises:
        BadRecord: the value is too large.
    """
    encoder = Encoder()
    message = encoder.message(encoder.encode(value))
    decoder = Decoder(message)
    return decoder.decode(decoder.content)
