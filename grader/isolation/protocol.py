"""The language that the trusted and the untrusted side speak: frames, and values within a frame.

A frame is two lengths, a header of JSON, and the bytes of tensors, whose dtypes and shapes the
header tells. Nothing in it is ever run: no pickle, no class names that are looked up, no attribute
names that are set. Whatever arrives is measured before it is read, and any deviation is a
`ProtocolError`.

Values are written as JSON. What JSON doesn't know is an object with a single letter:

    {"t": 3, ...}   the frame's tensor 3           {"l": [...]}  a list    {"u": [...]}  a tuple
    {"m": [...]}    a tensor's form without data   {"s": [...]}  a Size    {"d": [...]}  a dict
    {"y": "int64"}  a dtype                        {"v": "cpu"}  a device

and each side may add letters of its own.
"""

from __future__ import annotations

import json
import math
import re
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch import Tensor, nn

MAX_HEADER = 1 << 20
MAX_PAYLOAD = 256 << 20
MAX_TENSORS = 4096
MAX_DEPTH = 40
MAX_DIMENSIONS = 16
MAX_TEXT = 4000
MAX_NAME = 100

Header = dict[str, Any]
Packed = Any

_LENGTHS = struct.Struct("!II")
# Most frames fit into the first; a larger buffer takes the system longer to provide.
_FIRST_CHUNK, _CHUNK = 1 << 14, 1 << 18
_ALIGNED = 16

# Made once: json.dumps would make one for each text.
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decode = json.JSONDecoder().decode

_NOT_BRACKETS = bytes({*range(256)} - {*b"[]{}"})
# A text, closed or not, or a bracket. Possessive, so that no input takes more than one pass.
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)

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

_FILLING = [bytes(count) for count in range(_ALIGNED)]
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_OF_NUMPY = {SENT_DTYPES[name] for name in (*_SENT, "bool") if name != "bfloat16"}
_COPIED = 1 << 16


_STOCK = ("Linear", "Dropout", "LayerNorm", "Embedding", "Identity", "ReLU", "GELU", "Softmax")
STOCK: dict[str, type[nn.Module]] = {
    name: getattr(nn, name) for name in (*_STOCK, "ModuleList", "ModuleDict", "Sequential")
}
"""torch's own layers that the trusted side builds for itself, by name."""

FILE = "problem.py"
MODULE = "problem_"
"""The file and module name that the student's code sees."""


class ProtocolError(Exception):
    """What arrived isn't a message of this protocol."""


class Unsendable(Exception):  # noqa: N818  (it is a finding about a value)
    """A value can't be sent. The text completes "a value that can't be sent: ..."."""


class Closed(Exception):  # noqa: N818  (an event)
    """The other side closed the connection."""


# Frames


def send(connection: socket.socket, header: Header, tensors: list[Tensor]) -> None:
    """Send one frame.

    Args:
        connection: a stream socket.
        header: plain data for JSON. The key "tensors" is set here.
        tensors: contiguous tensors of the dtypes of SENT_DTYPES, in no graph.

    Raises:
        Unsendable: the frame would be larger than a frame may be.
        OSError: the connection is broken, or its time-out passed.
    """
    header["tensors"] = [[NAMES[tensor.dtype], tensor.shape] for tensor in tensors]
    text = _encode(header).encode()
    # Spaces, so that the first tensor's bytes lie as the receiver's memory is aligned.
    text += b" " * (-(_LENGTHS.size + len(text)) % _ALIGNED)
    pieces: list[Any] = [text]
    size = 0
    for tensor in tensors:
        data = _array(tensor)
        filling = _FILLING[-data.nbytes % _ALIGNED]  # up to where the next tensor may begin
        pieces += data, filling
        size += data.nbytes + len(filling)
    if len(text) > MAX_HEADER or size > MAX_PAYLOAD or len(tensors) > MAX_TENSORS:
        raise Unsendable("it is too large")
    connection.sendall(b"".join((_LENGTHS.pack(len(text), size), *pieces)))


def receive(
    connection: socket.socket, deadline: float | None = None
) -> tuple[Header, list[Tensor]]:
    """Receive one frame.

    Args:
        connection: a stream socket.
        deadline: the `time.monotonic()` by which the whole frame must be here.

    Raises:
        ProtocolError: what arrived isn't a frame, or is larger than a frame may be.
        Closed: the other side closed the connection.
        TimeoutError: the deadline passed.
        OSError: the connection is broken.
    """
    data = bytearray()
    _read(connection, data, _LENGTHS.size, deadline)
    header_size, payload_size = _LENGTHS.unpack_from(data)
    if header_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
        raise ProtocolError("the frame is too large")
    payload_at = _LENGTHS.size + header_size
    if payload_at % _ALIGNED:
        raise ProtocolError("the tensors' bytes aren't aligned")
    _read(connection, data, payload_at + payload_size, deadline)
    if len(data) != payload_at + payload_size:
        raise ProtocolError("more than one frame")  # each side waits for the other's answer
    return parse(data[_LENGTHS.size : payload_at], memoryview(data)[payload_at:])


def parse(text: bytes | bytearray, payload: bytearray | memoryview) -> tuple[Header, list[Tensor]]:
    """Read a frame's two parts.

    Args:
        text: the header.
        payload: the tensors' bytes, which become their memory.

    Raises:
        ProtocolError: they aren't what `send` writes.
    """
    try:
        _check_depth(text)
        header = _decode(text.decode())
        if type(header) is not dict:
            raise ProtocolError("the header isn't an object")
        return header, _tensors(header.pop("tensors", []), payload)
    except ProtocolError:
        raise
    except Exception as error:  # many kinds, from two parsers; all mean the same
        raise ProtocolError(f"unreadable frame ({type(error).__name__})") from None


def _read(connection: socket.socket, data: bytearray, size: int, deadline: float | None) -> None:
    """Receive until `data` has at least `size` bytes."""
    # The buffer grows with what arrives: a length alone costs the receiver nothing.
    while len(data) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
        part = connection.recv(_CHUNK if data else _FIRST_CHUNK)
        if not part:
            raise Closed
        data += part


def _check_depth(text: bytes | bytearray) -> None:
    brackets = bytes(text.translate(None, _NOT_BRACKETS))
    # Nearly always this is enough: what is left out each time is one or two levels.
    for _ in range(MAX_DEPTH // 2):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    # There may be brackets in texts.
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in b"[{":
            depth += 1
        elif token in b"]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise ProtocolError("the header is nested too deeply")


def _tensors(table: Packed, payload: bytearray | memoryview) -> list[Tensor]:
    if len(items(table)) > MAX_TENSORS:
        raise ProtocolError("there are too many tensors")
    found, start = [], 0
    for entry in table:
        name, shape = items(entry, 2)
        dtype, count = SENT_DTYPES[name_in(name, SENT_DTYPES)], math.prod(sizes(shape))
        end = start + count * dtype.itemsize
        if end > len(payload):
            raise ProtocolError("a tensor is longer than the frame")
        found.append(_tensor(payload, dtype, shape, count, start))
        start = end + -end % _ALIGNED
    if start != len(payload):
        raise ProtocolError("the frame is longer than its tensors")
    return found


def _tensor(
    payload: bytearray | memoryview,
    dtype: torch.dtype,
    shape: list[int],
    count: int,
    start: int,
) -> Tensor:
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    if dtype != torch.bool:
        return torch.frombuffer(payload, dtype=dtype, count=count, offset=start).view(shape)
    # A byte such as 2 is neither True nor False, and sum() and any() would disagree about it.
    data = torch.frombuffer(payload, dtype=torch.uint8, count=count, offset=start)
    return data.ne(0).view(shape)


# Values


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
        if isinstance(value, int | float | str):
            return _plain(value)
        if isinstance(value, torch.dtype):
            return {"y": NAMES[value]} if value in NAMES else self.other(value)
        if isinstance(value, torch.device):
            return {"v": str(value)}
        return self._container(value, depth + 1)

    def _container(self, value: object, depth: int) -> Packed:
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
        if name is None or tensor.dim() > MAX_DIMENSIONS:
            raise Unsendable(f"a tensor of {tensor.dtype} with {tensor.dim()} dimensions")
        if tensor.device.type == "meta" or name not in SENT_DTYPES:
            return {"m": [name, list(tensor.shape)]}
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            raise Unsendable("a tensor that isn't a plain dense one on the CPU")
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes > MAX_PAYLOAD or len(self.tensors) >= MAX_TENSORS:
            raise Unsendable("it is too large")
        packed: Packed = {"t": len(self.tensors)}
        plain = tensor.detach().resolve_neg()
        if not plain.is_contiguous():
            # `view` fails or not by the order of the dimensions in memory, so that order is kept.
            strides: tuple[int, ...] = plain.stride()
            order = sorted(range(plain.dim()), key=lambda dim: -strides[dim])
            if order != sorted(order):
                packed["order"] = order
            plain = plain.permute(order).contiguous()
        self.tensors.append(plain)
        return packed


class Unpacker:
    """Reads values back. A side that receives more kinds of values overrides `special`.

    Attributes:
        tensors: the frame's tensors.
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors

    def unpack(self, packed: Packed) -> Any:
        """Return the value that `packed` stands for.

        Raises:
            ProtocolError: it stands for none.
        """
        if packed is None or isinstance(packed, bool | float | str):
            return packed
        if isinstance(packed, int):
            return _int64(packed)
        if type(packed) is not dict:
            raise ProtocolError("a value is neither plain nor marked")
        for mark in ("t", "m", "l", "u", "s", "d", "y", "v"):
            if mark in packed:
                return self._marked(mark, packed)
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
        tensor = self.tensors[index(packed["t"], len(self.tensors))]
        order = packed.get("order")
        if order is None:
            return tensor
        if sorted(items(order)) != list(range(tensor.dim())):
            raise ProtocolError("an order of dimensions isn't one")
        return in_order(tensor, order)

    def form(self, packed: Packed) -> Tensor:
        """Return a tensor without data."""
        return form(packed)

    def special(self, packed: Header) -> Any:
        """Return a value of the kinds that only this side knows."""
        raise ProtocolError("a value has no known mark")


def in_order(tensor: Tensor, order: list[int]) -> Tensor:
    """Undo `tensor.permute(order)`."""
    return tensor.permute([order.index(dim) for dim in range(tensor.dim())])


# Small checks that a receiver makes; each raises ProtocolError.


def items(packed: Packed, count: int | None = None) -> list[Any]:
    """Return `packed` if it is a list, of `count` items if that is given."""
    if type(packed) is not list or count not in (None, len(packed)):
        raise ProtocolError("a list was expected")
    return packed


def index(packed: Packed, count: int) -> int:
    """Return `packed` if it is a number from 0 to `count` - 1."""
    if type(packed) is not int or not 0 <= packed < count:
        raise ProtocolError("a number is out of range")
    return packed


def name_in(packed: Packed, names: Any) -> str:
    """Return `packed` if it is one of `names`."""
    if type(packed) is not str or packed not in names:
        raise ProtocolError("a name isn't known")
    return packed


def identifier(packed: Packed) -> str:
    """Return `packed` if it could be a name in a program."""
    if type(packed) is not str or len(packed) > MAX_NAME or not packed.isidentifier():
        raise ProtocolError("a name isn't an identifier")
    return packed


def sizes(packed: Packed) -> list[int]:
    """Return `packed` if it is a tensor's shape."""
    found = items(packed)
    if len(found) > MAX_DIMENSIONS:
        raise ProtocolError("a shape has too many dimensions")
    for size in found:
        index(size, 1 << 40)
    if math.prod(found) >= 1 << 50:
        raise ProtocolError("a shape is too large")
    return found


def form(packed: Packed) -> Tensor:
    """Return a tensor without data (on the meta device) of the given dtype and shape."""
    dtype, shape = items(packed, 2)
    return torch.empty(sizes(shape), dtype=DTYPES[name_in(dtype, DTYPES)], device="meta")


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Cut a text and replace what could control a terminal; line ends and tabs stay."""
    cut = text[:limit]
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in cut
    )


def same(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors agree in dtype, shape and every byte (so NaN equals NaN)."""
    if a.dtype is not b.dtype or a.shape != b.shape or a.device != b.device:
        return False
    if a.is_meta:
        return True
    one, other = _array(a), _array(b)
    # torch.equal takes longer than either, several times as long for large tensors.
    if one.nbytes <= _COPIED:
        return one.tobytes() == other.tobytes()
    bits = f"i{one.itemsize}"
    return numpy.array_equal(one.view(bits), other.view(bits))


def _array(tensor: Tensor) -> numpy.ndarray[Any, Any]:
    """Return a tensor's numbers; those of a kind that NumPy doesn't have as integers."""
    plain = tensor.detach()
    if plain.is_complex() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
        plain = torch.view_as_real(plain) if plain.is_complex() else plain
    if plain.dtype not in _OF_NUMPY:
        plain = plain.view(_BITS[plain.element_size()])
    return plain.numpy()


def tensors_of(module: nn.Module) -> Iterator[tuple[str, Tensor, bool]]:
    """Yield name and tensor of a module's parameters and buffers, and whether it is a parameter.

    Each is told once, by its first name, as `named_parameters` and `named_buffers` do, which take
    much longer; before each call both sides look for what was changed.
    """
    seen: set[int] = set()
    for path, part in parts_of(module):
        start = f"{path}." if path else ""
        for members, is_parameter in ((part._parameters, True), (part._buffers, False)):
            for name, tensor in members.items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield start + name, tensor, is_parameter


def parts_of(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return a module and those in it, each once and with its path, as `named_modules` does."""
    found, seen = [("", module)], {id(module)}
    for path, part in found:  # which grows meanwhile
        for name, child in part._modules.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                found.append((f"{path}.{name}" if path else name, child))
    return found


def _few(kind: Any, values: Any) -> list[Any]:
    # More can't be told in a header; this keeps a giant list from being walked to its end.
    if kind.__len__(values) > MAX_HEADER // 2:
        raise Unsendable("it has too many items")
    return list(kind.__iter__(values))


def _int64(number: int) -> int:
    # Of keys with the same hash there are a few among the numbers of 64 bits; beyond, any number.
    if not -(1 << 63) <= number < 1 << 63:
        raise ProtocolError("an integer of more than 64 bits")
    return number


def _plain(value: int | float | str) -> Packed:
    # Subclasses (numpy's float64, an IntEnum) become the plain number or text that they are.
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    number = int.__int__(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise Unsendable("an integer of more than 64 bits")
    return number
