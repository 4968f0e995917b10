"""Values: written as JSON with the frame's tensors beside it, and read back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from grader.isolation.protocol import (
    MAX_BUILT,
    MAX_DEPTH,
    MAX_DIMENSIONS,
    MAX_HEADER,
    MAX_PAYLOAD,
    MAX_TENSORS,
    Header,
    Packed,
    ProtocolError,
    Unsendable,
)
from grader.isolation.protocol.checks import index, int64, items, name_in, sizes
from grader.isolation.protocol.tensors import (
    DTYPES,
    NAMES,
    SENT_DTYPES,
    form,
    in_order,
    order_in_memory,
)

_PLAIN = (int, float, str)
_AS_THEY_ARE = frozenset({bool, float, str, type(None)})
_MARKS = frozenset("tludmfsyv")


class Packer:
    """Writes values as JSON and gathers their tensors.

    A side that sends more kinds of values overrides `other`.

    Attributes:
        tensors: what goes into the frame beside the header.
    """

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self._bytes = 0

    def pack(self, value: object, depth: int = 0) -> Packed:
        """Return `value` as JSON.

        Raises:
            Unsendable: it can't be sent.
        """
        if depth > MAX_DEPTH // 3:
            raise Unsendable("it is nested too deeply")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, _PLAIN):
            return _plain(value)
        if isinstance(value, torch.dtype):
            return {"y": NAMES[value]} if value in NAMES else self.other(value)
        if isinstance(value, torch.device):
            return {"v": str(value)}
        return self.container(value, depth + 1)

    def container(self, value: object, depth: int) -> Packed:
        """Return a list, tuple or dict as JSON; of anything else what `other` says."""
        if isinstance(value, torch.Size):
            return {"s": [int(size) for size in value]}
        # As the plain containers that they are: a subclass may have an iterator of its own.
        if isinstance(value, list):
            return {"l": [self.pack(item, depth) for item in _few(list, value)]}
        if isinstance(value, tuple):
            return {"u": [self.pack(item, depth) for item in _few(tuple, value)]}
        if isinstance(value, dict):
            pairs = dict.items(value) if _few(dict, value) else ()
            return {"d": [[self.pack(k, depth), self.pack(v, depth)] for k, v in pairs]}
        return self.other(value)

    def other(self, value: object) -> Packed:
        """Return something that is neither plain data nor a tensor as JSON, or raise Unsendable."""
        raise Unsendable(f"a {type(value).__name__}")

    def tensor(self, tensor: Tensor) -> Packed:
        """Add a tensor to the frame and return what stands for it in the JSON.

        Raises:
            Unsendable: it isn't a plain tensor, or is too large.
        """
        name = NAMES.get(tensor.dtype)
        if name is None:
            raise Unsendable(f"a tensor of {tensor.dtype}")
        if tensor.dim() > MAX_DIMENSIONS:
            raise Unsendable(f"a tensor with {tensor.dim()} dimensions")
        if tensor.is_meta or name not in SENT_DTYPES:
            return {"m": [name, list(tensor.shape)]}
        if tensor.layout is not torch.strided or not tensor.is_cpu:
            raise Unsendable("a tensor that isn't a plain dense one on the CPU")
        # `nbytes` overflows where a single number has been expanded far.
        self._bytes += math.prod(tensor.shape) * tensor.dtype.itemsize
        if self._bytes > MAX_PAYLOAD or len(self.tensors) >= MAX_TENSORS:
            raise Unsendable("it is too large")
        packed: Packed = {"t": len(self.tensors)}
        plain = tensor.detach()
        if plain.is_neg():
            plain = plain.resolve_neg()
        if not plain.is_contiguous():
            # `view` fails or not by the order of the dimensions in memory, so that order is kept.
            order = order_in_memory(plain)
            if order != sorted(order):
                packed["order"] = order
            plain = plain.permute(order).contiguous()
        self.tensors.append(plain)
        return packed


def lists_in(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the lists among some values, and those in these, in an order that both sides have."""
    for value in values:
        if isinstance(value, list):
            yield value
            yield from lists_in(list.__iter__(value))
        elif isinstance(value, tuple):
            yield from lists_in(tuple.__iter__(value))
        elif isinstance(value, dict):
            yield from lists_in(dict.values(value))


def _few(kind: Any, values: Any) -> list[Any]:
    # More can't be told in a header; this keeps a giant list from being walked to its end.
    if kind.__len__(values) > MAX_HEADER // 2:
        raise Unsendable("it has too many items")
    return list(kind.__iter__(values))


def _plain(value: int | float | str) -> Packed:
    # Subclasses (numpy's float64, an IntEnum) become the plain number or text that they are.
    if isinstance(value, float):
        number = float.__float__(value)
        return number if math.isfinite(number) else {"f": float.__repr__(number)}
    if isinstance(value, str):
        return _unicode(str.__str__(value))
    whole = int.__int__(value)
    if not -(1 << 63) <= whole < 1 << 63:
        raise Unsendable("an integer of more than 64 bits")
    return whole


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unsendable("a text that is no Unicode") from None
    return text


class Received(list[Tensor]):
    """The tensors of an answer, and what is built of them.

    Each time one is named it counts: as entry of a list, as a buffer, with its dimensions turned.
    Whoever reads it may make copies of them all.

    Attributes:
        built: the bytes that were named so far.
    """

    built = 0

    def named(self, number: Packed) -> Tensor:
        """Return a tensor by its number.

        Raises:
            ProtocolError: there is none, or too much was named.
        """
        tensor = self[index(number, len(self))]
        self.built += tensor.nbytes
        if self.built > MAX_BUILT:
            raise ProtocolError("too much is made of the tensors")
        return tensor


class Unpacker:
    """Reads values back. A side that receives more kinds of values overrides `special`.

    Args:
        tensors: the frame's tensors.

    Attributes:
        tensors: the same.
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors if isinstance(tensors, Received) else Received(tensors)

    def unpack(self, packed: Packed) -> Any:
        """Return the value that `packed` stands for.

        Raises:
            ProtocolError: it stands for none.
        """
        kind = type(packed)
        if kind in _AS_THEY_ARE:
            return packed
        if kind is int:
            return int64(packed)
        if kind is not dict:
            raise ProtocolError("a value is neither plain nor marked")
        for mark in packed:
            if mark in _MARKS:
                value = self._marked(mark, packed)
                return self.named(value, packed) if "as" in packed else value
        return self.special(packed)

    def _marked(self, mark: str, packed: Header) -> Any:
        content = packed[mark]
        match mark:
            case "t":
                return self.tensor(packed)
            case "m":
                return self.form(content)
            case "l":
                return [self.unpack(item) for item in items(content)]
            case "u":
                return tuple(self.unpack(item) for item in items(content))
            case "s":
                return torch.Size(sizes(content))
            case "d":
                return self._dict(content)
            case "f":
                return float(name_in(content, ("nan", "inf", "-inf")))
            case "y":
                return DTYPES[name_in(content, DTYPES)]
            case _:
                return torch.device(name_in(content, ("cpu", "meta")))

    def _dict(self, content: Packed) -> dict[Any, Any]:
        result = {}
        for pair in items(content):
            key, value = (self.unpack(part) for part in items(pair, 2))
            if not isinstance(key, str | int | float | bool | None):
                raise ProtocolError("a key isn't plain")
            result[key] = value
        return result

    def tensor(self, packed: Header) -> Tensor:
        """Return the tensor that `packed` stands for, its dimensions in memory as they were sent.

        Raises:
            ProtocolError: there is no such tensor.
        """
        tensor = self.tensors.named(packed["t"])
        order = packed.get("order")
        if order is None:
            return tensor
        if sorted(items(order)) != list(range(tensor.dim())):
            raise ProtocolError("an order of dimensions isn't one")
        return in_order(tensor, order)

    def form(self, packed: Packed) -> Tensor:
        """Return a tensor without data."""
        return form(packed)

    def named(self, value: Any, packed: Header) -> Any:
        """Return a list, tuple or dict as one of a class of the student's."""
        raise ProtocolError("a class of the student's isn't known here")

    def special(self, packed: Header) -> Any:
        """Return a value of the kinds that only this side knows."""
        raise ProtocolError("a value has no known mark")
