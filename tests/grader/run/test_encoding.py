"""Values are encoded and decoded unchanged, and hostile bytes are refused."""

from __future__ import annotations

import math
import random
import struct
from contextlib import suppress
from typing import Any

import msgspec
import numpy
import pytest
import torch

from grader.run import encoding
from grader.run.encoding import MOST_BYTES, MOST_TEXT, BadRecord, Decoder, Encoder, round_trip

TENSORS = [
    *(torch.tensor([[1.5, -2.0]]).to(getattr(torch, name)) for name in encoding._TENSORS),
    torch.tensor(math.nan),
    torch.empty(0, 3),
    torch.randn(3, 4).mT,
    torch.ones(1).expand(5),
    torch.ones(4)[::4],
    torch.randn(2, dtype=torch.complex64).conj(),
    torch.nn.Parameter(torch.ones(2)),
]


@pytest.mark.parametrize("tensor", TENSORS, ids=range(len(TENSORS)))
def test_a_tensor_arrives(tensor: torch.Tensor) -> None:
    copied = round_trip(tensor)
    assert type(copied) is torch.Tensor
    assert not copied.requires_grad
    torch.testing.assert_close(
        copied, tensor.detach().clone(), rtol=0, atol=0, equal_nan=True, check_stride=False
    )


@pytest.mark.parametrize("name", encoding._ARRAYS)
def test_an_array_arrives(name: str) -> None:
    array = numpy.array([[1, 0], [3, 2]]).astype(name)
    copied = round_trip(array.T)
    assert copied.dtype == array.dtype
    assert numpy.array_equal(copied, array.T)
    copied[0] = 0  # the copy is writable


@pytest.mark.parametrize(
    "value",
    [None, True, False, 7, -(2**62), 0.1, -math.inf, "text \n é \0", [1, [2]], (1, (2.0,)),
     {"a": [None], 3: ()}],
    ids=repr,
)  # fmt: skip
def test_a_plain_value_arrives(value: Any) -> None:
    copied = round_trip(value)
    assert copied == value
    assert type(copied) is type(value)


class Text(str):
    """A subclass of str that a student defines."""


class Equal:
    """An object that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "value", [Text("x"), Equal(), 2**64, numpy.float32(1), {Equal: 1}, print, iter([])]
)
def test_other_objects_arrive_as_the_name_of_their_type(value: Any) -> None:
    copied = round_trip(value)
    assert type(copied).__name__ == type(value).__name__
    assert type(copied) is not type(value)


def with_storage_of(size: int, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor after changing its storage to `size` bytes."""
    tensor.untyped_storage().resize_(size)
    return tensor


@pytest.mark.parametrize(
    "tensor",
    [
        torch.empty(2, 3, device="meta"),
        torch.eye(2).to_sparse(),
        torch.ones(2).to(torch.float8_e4m3fn),
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        torch.empty(1 << 40, device="meta"),
        with_storage_of(0, torch.ones(2, 3)),
        with_storage_of(8, torch.ones(3, 2).mT),
    ],
    ids=["meta", "sparse", "float8", "quantized", "large", "no memory", "little memory"],
)
def test_an_unusual_tensor_arrives_as_its_shape_and_dtype(tensor: torch.Tensor) -> None:
    copied = round_trip(tensor)
    assert (copied.shape, copied.dtype, copied.is_meta) == (tensor.shape, tensor.dtype, True)


def test_later_changes_do_not_affect_a_recorded_value() -> None:
    encoder, tensor = Encoder(), torch.ones(2)
    tree = encoder.encode(tensor)
    tensor.zero_()
    assert decoded(encoder.message(tree)).tolist() == [1, 1]


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(1).expand(1 << 40),
        torch.ones(MOST_BYTES // 4 + 1),
        [torch.ones(MOST_BYTES // 8), torch.ones(MOST_BYTES // 8 + 1)],
        numpy.broadcast_to(numpy.ones(1), (1 << 40,)),
        "x" * (encoding.MOST_PARTS + 1),
        [0] * encoding.MOST_PARTS,
        nested(encoding.DEEPEST + 1),
        CIRCLE,
    ],
    ids=["expanded", "large", "two", "array", "text", "many", "deep", "circle"],
)
def test_too_large_values_are_refused(value: Any) -> None:
    with pytest.raises(BadRecord):
        round_trip(value)


def decoded(data: bytes) -> Any:
    decoder = Decoder(data)
    return decoder.decode(decoder.content)


def message(content: Any, numbers: bytes = b"") -> bytes:
    text = content if isinstance(content, bytes) else msgspec.json.encode(content)
    return struct.pack("<II", len(text), len(numbers)) + text + numbers


HOSTILE = {
    "nothing": b"",
    "no sizes": b"abc",
    "too short": message([1])[:-1],
    "too long": message([1]) + b"x",
    "too many numbers": struct.pack("<II", 1, MOST_BYTES + 1) + b"1" + bytes(MOST_BYTES + 1),
    "too much text": message("x" * MOST_TEXT),
    "no JSON": message(b"{"),
    "no UTF-8": message(b'"\xff"'),
    "deep JSON": message(b"[" * 100_000),
    "deep": message(["list"] and nested(30)),
    "unknown kind": message(["pickle", "x"]),
    "no kind": message([]),
    "object": message({"a": 1}),
    "number": message(1.5),
    "float of text": message(["float", "one"]),
    "float too large": message(["float", "0x1p+99999"]),
    "dtype": message(["tensor", "pickle", [1]], b"1"),
    "dtype of a module": message(["form", "nn", [1]]),
    "numbers are missing": message(["tensor", "float32", [2]], b"1234"),
    "shape is too large": message(["tensor", "int8", [1 << 50]]),
    "shape overflows": message(["form", "float32", [1 << 62, 0, 1 << 62]]),
    "negative shape": message(["tensor", "int8", [-1, -1]], b"1"),
    "shape of text": message(["tensor", "int8", ["1"]], b"1"),
    "shape of truth": message(["tensor", "int8", [True]], b"1"),
    "many dimensions": message(["form", "int8", [1] * 65]),
    "many parts": message(["list", *([0] * (encoding.MOST_PARTS + 1))]),
    "key of a list": message(["dict", [[1], 2]]),
    "no pair": message(["dict", [1]]),
    "type of code": message(["type", "x; import os"]),
    "long type": message(["type", "x" * 101]),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_message_is_refused(data: bytes) -> None:
    with pytest.raises(BadRecord):
        decoded(data)


def test_a_message_with_a_wrong_bit_is_refused_or_read() -> None:
    encoder = Encoder()
    value = {"a": torch.ones(2), "b": [1.5, (None, "x"), numpy.ones(2)]}
    data = encoder.message(encoder.encode(value))
    rng = random.Random(1)
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(BadRecord):
            decoded(bytes(changed))
