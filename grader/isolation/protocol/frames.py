"""Frames: a header and tensors as bytes, sent and received."""

from __future__ import annotations

import math
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any

import msgspec
import torch
from torch import Tensor

from grader.isolation.protocol import (
    MAX_DEPTH,
    MAX_HEADER,
    MAX_PAYLOAD,
    MAX_TENSORS,
    Closed,
    Header,
    Packed,
    ProtocolError,
    Unsendable,
)
from grader.isolation.protocol.checks import items, name_in, sizes
from grader.isolation.protocol.memory import ANSWERS_AT, Memory
from grader.isolation.protocol.tensors import NAMES, SENT_DTYPES, array, array_on, tensor_on

_LENGTHS = struct.Struct("!II")
# Most frames fit into the first; a larger buffer takes the system longer to provide.
_FIRST_CHUNK, _CHUNK = 1 << 14, 1 << 18
_ALIGNED = 16
_FILLING = [bytes(count) for count in range(_ALIGNED)]

# A tenth of what json takes.
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_NOT_BRACKETS = bytes({*range(256)} - {*b"[]{}"})
# A text, closed or not, or a bracket. Possessive, so that no input takes more than one pass.
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


Left = Callable[[], float]
"""Tells for how many seconds one may wait before asking again; raises TimeoutError at the end."""


def within(seconds: float) -> Left:
    """Return what tells how much is left of so many seconds from now."""
    deadline = time.monotonic() + seconds

    def left() -> float:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    return left


class Answer(msgspec.Struct):
    """A worker's answer, what it says not read yet.

    Attributes:
        id: the number of the request.
        released: the places that the worker needs no more.
        says: the header of what it says, as text.
    """

    id: int
    released: list[int]
    says: msgspec.Raw


_decode_answer = msgspec.json.Decoder(Answer).decode


def send(
    channel: socket.socket, header: Header, tensors: list[Tensor], left: Left | None = None
) -> None:
    """Send one frame.

    Args:
        channel: a stream socket.
        header: plain data for JSON. The key "tensors" is set here.
        tensors: contiguous tensors of the dtypes of SENT_DTYPES, in no graph.
        left: how long the other side may take to receive it; None for ever.

    Raises:
        Unsendable: the frame would be larger than a frame may be.
        TimeoutError: the time is over.
        OSError: the connection is broken.
    """
    header["tensors"] = _forms(tensors)
    sizes = _sizes(tensors)
    frame = b"".join((_head(header, sizes), *_with_fillings(tensors)))
    if left is None:
        channel.sendall(frame)
    else:
        _write(channel, frame, left)


def send_answer(
    channel: socket.socket, header: Header, says: Header, tensors: list[Tensor], memory: Memory
) -> None:
    """Send a frame that an `Answer` is made of, and put its tensors into memory; as `send`.

    Args:
        channel: a stream socket.
        header: what it says to this request only.
        says: all else. The key "tensors" is set here.
        tensors: as for `send`.
        memory: where to put the tensors' bytes.
    """
    says["tensors"] = _forms(tensors)
    sizes = _sizes(tensors)
    frame = _head(header | {"says": says}, sizes)
    starts = [*accumulate(sizes, initial=ANSWERS_AT)]
    memory.write_all(starts, tensors)
    channel.sendall(frame)


def _forms(tensors: list[Tensor]) -> Packed:
    return [[NAMES[tensor.dtype], tensor.shape] for tensor in tensors]


def _sizes(tensors: list[Tensor]) -> list[int]:
    """Return how many bytes each tensor takes, up to where the next one may begin."""
    return [tensor.nbytes + -tensor.nbytes % _ALIGNED for tensor in tensors]


def _head(header: Header, sizes: list[int]) -> bytes:
    """Return the bytes of a frame up to its tensors'."""
    text, size = written(header), sum(sizes)
    # Spaces, so that the first tensor's bytes lie as the receiver's memory is aligned.
    text += b" " * (-(_LENGTHS.size + len(text)) % _ALIGNED)
    if len(text) > MAX_HEADER or size > MAX_PAYLOAD or len(sizes) > MAX_TENSORS:
        raise Unsendable("it is too large")
    return _LENGTHS.pack(len(text), size) + text


def _with_fillings(tensors: list[Tensor]) -> Iterator[Any]:
    """Yield the bytes of tensors, and after each as many as up to where the next one may begin."""
    for tensor in tensors:
        data = array(tensor)
        yield data
        yield _FILLING[-data.nbytes % _ALIGNED]


def _write(channel: socket.socket, frame: bytes, left: Left) -> None:
    """Send all of a frame, as long as there is time left."""
    rest = memoryview(frame)
    while rest:
        channel.settimeout(left())
        with suppress(TimeoutError):  # there may be more time left than it seemed
            rest = rest[channel.send(rest) :]


def receive(channel: socket.socket, left: Left | None = None) -> tuple[Header, list[Tensor]]:
    """Receive one frame that has its tensors' bytes.

    Args:
        channel: a stream socket.
        left: how long it may take until the whole frame is here; None for ever.

    Raises:
        ProtocolError: what arrived isn't a frame, or is larger than a frame may be.
        Closed: the other side closed the connection.
        TimeoutError: the time is over.
        OSError: the connection is broken.
    """
    text, payload, _ = _receive(channel, left, in_memory=False)
    return parse(text, payload)


def receive_answer(channel: socket.socket, left: Left) -> tuple[Answer, int]:
    """Receive an answer, whose tensors lie in memory, and how many bytes they take.

    What it says has their forms, which `tensors_of` takes. Errors are those of `receive`.
    """
    text, _, size = _receive(channel, left, in_memory=True)
    return read_answer(text), size


def read_answer(text: bytes | bytearray) -> Answer:
    """Read an answer's header, but for what it says, which may be nested however deeply.

    Raises:
        ProtocolError: it isn't what `send_answer` writes.
    """
    with _unreadable:
        return _decode_answer(text)


def receive_request(channel: socket.socket) -> Header:
    """Receive the header of a frame from the trusted side, whose tensors lie in memory.

    Raises:
        Closed: the other side closed the connection.
        OSError: the connection is broken.
    """
    text, _, _ = _receive(channel, None, in_memory=True)
    header: Header = _decode(text)
    return header


def _receive(
    channel: socket.socket, left: Left | None, *, in_memory: bool
) -> tuple[bytearray, memoryview, int]:
    """Return a frame's header, its tensors' bytes if they are in it, and how many there are."""
    data = bytearray()
    _read(channel, data, _LENGTHS.size, left)
    header_size, payload_size = _LENGTHS.unpack_from(data)
    if header_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
        raise ProtocolError("the frame is too large")
    payload_at = _LENGTHS.size + header_size
    if payload_at % _ALIGNED:
        raise ProtocolError("the tensors' bytes aren't aligned")
    end = payload_at if in_memory else payload_at + payload_size
    _read(channel, data, end, left)
    if len(data) != end:
        raise ProtocolError("more than one frame")  # each side waits for the other's answer
    return data[_LENGTHS.size : payload_at], memoryview(data)[payload_at:], payload_size


def parse(text: bytes | bytearray, payload: bytearray | memoryview) -> tuple[Header, list[Tensor]]:
    """Read a frame's two parts.

    Args:
        text: the header.
        payload: the tensors' bytes, which become their memory.

    Raises:
        ProtocolError: they aren't what `send` writes.
    """
    header = read_header(text)
    return header, tensors_of(header, payload)


def read_header(text: bytes | bytearray) -> Header:
    """Read a frame's header.

    Raises:
        ProtocolError: it isn't what `send` writes.
    """
    with _unreadable:
        _check_depth(text)
        header = _decode(text)
        if type(header) is not dict:
            raise ProtocolError("the header isn't an object")
        return header


def tensors_of(header: Header, payload: bytearray | memoryview) -> list[Tensor]:
    """Take the tensors' forms from a header, and return tensors on the memory of `payload`.

    Raises:
        ProtocolError: they don't fit each other.
    """
    with _unreadable:
        return _tensors(header.pop("tensors", []), payload)


def written(header: Header) -> bytes:
    """Return a header as text; two texts are the same if what they say is, in the same order.

    Raises:
        Unsendable: there is something in it that is no Unicode.
    """
    try:
        return _encode(header)
    except UnicodeEncodeError:
        raise Unsendable("a text that is no Unicode") from None


as_written = msgspec.Raw
"""Makes of a text that `written` gave a part of another header."""


class _Unreadable:
    """Raises what parsers do as a ProtocolError: many kinds, from two of them; all mean the same.

    contextlib takes longer.
    """

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, ProtocolError):
            raise ProtocolError(f"unreadable frame ({type(error).__name__})") from None


_unreadable = _Unreadable()


def _read(channel: socket.socket, data: bytearray, size: int, left: Left | None) -> None:
    """Receive until `data` has at least `size` bytes."""
    # The buffer grows with what arrives: a length alone costs the receiver nothing.
    while len(data) < size:
        if left is not None:
            channel.settimeout(left())
        try:
            part = channel.recv(_CHUNK if data else _FIRST_CHUNK)
        except TimeoutError:
            continue  # there may be more time left than it seemed
        if not part:
            raise Closed
        data += part


def _check_depth(text: bytes | bytearray) -> None:
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return
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
        return tensor_on(array_on(payload, dtype, shape, start), dtype)
    # A byte such as 2 is neither True nor False, and sum() and any() would disagree about it.
    return tensor_on(array_on(payload, torch.uint8, shape, start), torch.uint8).ne(0)
