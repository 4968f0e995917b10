"""Messages between both sides: how they are written, sent, received and read.

A frame is two lengths and a message as JSON. A message's tensors lie in memory that both sides see;
the message has their dtypes and shapes. msgspec encodes messages and checks, in C, that what
arrives has the form that is declared here; sizes, counts and nesting are checked before that.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Annotated, Any, Literal

import msgspec
import torch
from msgspec import Meta, Struct
from torch import Tensor

from grader.boundary.frames import Closed, Left, ProtocolError

MAX_HEADER = 1 << 20
MAX_PAYLOAD = 256 << 20
MAX_BUILT = 512 << 20
MAX_TENSORS = 4096
MAX_DEPTH = 40
MAX_DIMENSIONS = 16
MAX_TEXT = 4000
MAX_NAME = 100
MAX_FIELDS = 100
MAX_REFERENCES = 1000
MAX_ATTEMPTS = 5
MAX_OPERANDS = 4

FILE = "problem.py"
MODULE = "problem_"
"""The file and module name that the student's code sees."""


class Unsendable(Exception):  # noqa: N818  (it is a finding about a value)
    """A value can't be sent. The text completes "a value that can't be sent: ..."."""


# What messages are made of.

_SENT = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
SENT_NAMES = (*_SENT, "bool")
"""The dtypes whose entries are sent."""

FORM_NAMES = tuple(
    name
    for name in SENT_NAMES
    + ("complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2")
    + ("uint16", "uint32", "uint64", "qint8", "quint8", "qint32")
    if hasattr(torch, name)
)
"""The dtypes that have a name here. Of those beyond SENT_NAMES only the form is sent."""

Index = Annotated[int, Meta(ge=0, lt=1 << 62)]
# Of keys with the same hash there are a few among the integers of 64 bits; beyond, any number.
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
ShortName = Annotated[str, Meta(max_length=MAX_NAME)]
MemberName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_]{1,100}\Z")]
"""What a parameter, a buffer or a child of a module may be called."""
MemberPath = Annotated[str, Meta(pattern=r"\A(?:[A-Za-z0-9_]{1,100}\.)*[A-Za-z0-9_]{1,100}\Z")]
Shape = Annotated[list[Annotated[int, Meta(ge=0, lt=1 << 40)]], Meta(max_length=MAX_DIMENSIONS)]
SentDtype = Literal[SENT_NAMES]  # type: ignore[valid-type]
FormDtype = Literal[FORM_NAMES]  # type: ignore[valid-type]
TensorForm = tuple[SentDtype, Shape]
Plain = None | bool | Int64 | float | Annotated[str, Meta(max_length=MAX_TEXT)]


class Value(Struct, array_like=True, forbid_unknown_fields=True):
    """A value that JSON doesn't have: a short tag, and what it is made of."""


class TensorValue(Value, tag="t"):
    """One of the message's tensors.

    Attributes:
        number: which one.
        order: its dimensions, the one with the longest strides first, if they aren't in order.
        grad: whether it is part of a graph.
        leaf: whether it is a leaf of it.
        result: its place among the response's results.
    """

    number: Index
    order: list[Index] | None = None
    grad: bool = False
    leaf: bool = False
    result: Index | None = None


class ArrayValue(Value, tag="a"):
    """A NumPy array, whose entries are those of one of the message's tensors."""

    number: Index
    is_writable: bool = True


class FormValue(Value, tag="m"):
    """A tensor's dtype and shape without entries."""

    dtype: FormDtype
    shape: Shape


class ListValue(Value, tag="l"):
    """A list."""

    items: list[AnyValue]


class TupleValue(Value, tag="u"):
    """A tuple."""

    items: list[AnyValue]


class DictValue(Value, tag="d"):
    """A dict."""

    items: list[tuple[AnyValue, AnyValue]]


class StudentsValue(Value, tag="k"):
    """A list, tuple or dict of a class of the student's.

    Attributes:
        plain: what is in it.
        name: of the class.
        fields: the names of a tuple's fields, if it has such.
    """

    plain: ListValue | TupleValue | DictValue
    name: ShortName
    fields: list[ShortName] = []


class SizeValue(Value, tag="s"):
    """A torch.Size."""

    sizes: Shape


class FloatValue(Value, tag="f"):
    """A float that isn't finite."""

    text: Literal["nan", "inf", "-inf"]


class DtypeValue(Value, tag="y"):
    """A torch.dtype."""

    name: FormDtype


class DeviceValue(Value, tag="v"):
    """A torch.device."""

    name: Literal["cpu", "meta"]


class GeneratorValue(Value, tag="g"):
    """A random generator, whose state is one of the message's tensors."""

    state: Index


class ReferenceValue(Value, tag="h"):
    """An object that stays with the student's code; for the tests with its plain fields."""

    number: Index
    name: ShortName = ""
    fields: Annotated[list[tuple[ShortName, Plain | FloatValue]], Meta(max_length=MAX_FIELDS)] = []


class OutputValue(Value, tag="out"):
    """A tensor at which a call's graph ends, by its number among those of all graphs."""

    number: Index


class ModuleValue(Value, tag="o"):
    """A module that stays with the student's code, with all that is in it."""

    number: Index
    module: ModuleForm


class OtherValue(Value, tag="x"):
    """Anything else: the name of its type, and whether it can be called."""

    name: ShortName
    is_callable: bool = False


AnyValue = (
    None
    | bool
    | Int64
    | float
    | str
    | TensorValue
    | ArrayValue
    | FormValue
    | ListValue
    | TupleValue
    | DictValue
    | StudentsValue
    | SizeValue
    | FloatValue
    | DtypeValue
    | DeviceValue
    | GeneratorValue
    | ReferenceValue
    | OutputValue
    | ModuleValue
    | OtherValue
)
SomeTensor = TensorValue | FormValue | None


class ModuleForm(Struct, forbid_unknown_fields=True):
    """A module: its class, and its members by name.

    Attributes:
        name: of its class.
        stock: the layer of torch's own that it is, or is derived from.
        settings: what a stock layer was made with.
        parameters: tensors, and whether they want gradients. The same one is the same tensor.
        buffers: tensors, and whether they are persistent.
    """

    name: ShortName
    stock: str | None
    training: bool
    settings: list[tuple[ShortName, AnyValue]]
    parameters: list[tuple[MemberName, SomeTensor, bool]]
    buffers: list[tuple[MemberName, SomeTensor, bool]]
    children: list[tuple[MemberName, ModuleForm | None]]


# Requests. The student's side reads them; it has no reason for doubt.


class ModuleState(Struct):
    """What changed of a module on the trusted side since the last request.

    Attributes:
        tensors: parameters and buffers, and whether they want gradients.
        settings: by path, the mode and the settings of a stock layer.
    """

    tensors: list[tuple[str, SomeTensor, bool]]
    settings: list[tuple[str, bool, list[tuple[str, AnyValue]]]]


class RequestTarget(Struct):
    """What a request is about.

    Attributes:
        name: the function, method or attribute; empty for a module itself.
        module: the number of the module that it belongs to.
        path: the place within that module.
        reference: the number of the object that it belongs to.
        state: what changed of the module.
    """

    name: str
    module: int | None = None
    path: str = ""
    reference: int | None = None
    state: ModuleState | None = None


class Setting(Struct, array_like=True):
    """The state of the process in which the student's code is to run.

    Attributes:
        random: the tensor that is the global random state.
        dtype: torch's default.
        grad: whether gradients are wanted.
        inference: whether nothing may be differentiated, as in `torch.inference_mode`.
        count: whether to count what it costs.
    """

    random: int
    dtype: str
    grad: bool
    inference: bool
    count: bool


class Arguments(Struct, array_like=True):
    """Those of one call, and the gradient of its result that will be asked for."""

    args: list[AnyValue]
    kwargs: list[tuple[str, AnyValue]]
    upstream: SomeTensor = None


class Load(Struct, tag=True):
    """Run a student's file, which is the request's only tensor."""

    forbidden: tuple[str, ...] = ()
    capture: bool = False


class CallRequest(Struct, tag=True):
    """Call something, once for each of these arguments.

    Attributes:
        weights: the names of parameters that want gradients.
        seeds: what the global generator is seeded with before each call.
    """

    target: RequestTarget
    setting: Setting
    calls: list[Arguments]
    weights: list[str] = []
    seeds: list[int] | None = None


class AttributeRequest(Struct, tag=True):
    """Read an attribute."""

    target: RequestTarget
    setting: Setting


class BackwardRequest(Struct, tag=True):
    """Take gradients in the graph of a call.

    Attributes:
        graph: its number.
        upstream: the gradients of its outputs.
        wanted: for which of its inputs.
    """

    graph: int
    upstream: list[SomeTensor]
    wanted: list[int]
    count: bool


class Request(Struct):
    """What the trusted side sends.

    Attributes:
        id: its number.
        begins: whether a test begins, so that nothing from before is needed.
        free: numbers of what isn't needed any more.
        placed: dtype, shape and place of each tensor in the shared memory.
    """

    id: int
    begins: bool
    free: list[int]
    placed: list[tuple[str, list[int], int]]
    do: Load | CallRequest | AttributeRequest | BackwardRequest


# Responses. All that they say may be a lie.


OperandName = Annotated[str, Meta(pattern=r"\A[^\W\d][\w.]{0,59}\Z")]
OperandForm = Annotated[str, Meta(pattern=r"\A\([\d, ]{0,200}\) \w{1,30}\Z")]


class ErrorForm(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """An exception.

    Attributes:
        kind: the built-in exception that it is, or is derived from.
        name: of its class.
        line: in the student's file; 0 if it comes from elsewhere.
        where: the function of that line.
        operands: tensors that the line names, with their dtypes and shapes as text.
        syntax: message, line and text, if the file can't even be read.
    """

    kind: str
    name: ShortName
    text: str = ""
    line: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0
    where: str = ""
    operands: Annotated[list[tuple[OperandName, OperandForm]], Meta(max_length=MAX_OPERANDS)] = []
    syntax: tuple[str, Annotated[int, Meta(ge=0, lt=1 << 31)], str] | None = None


class Gradients(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Gradients, or why there are none."""

    values: list[SomeTensor] = []
    error: ErrorForm | None = None
    unsendable: str | None = None
    called: str | None = None


class GraphForm(Struct, array_like=True, forbid_unknown_fields=True):
    """The graph of a call.

    Attributes:
        call: the number of the call.
        number: what the worker calls the graph.
        outputs: the tensors at which it ends.
        foreseen: the gradients for the upstream gradient that came with the call.
    """

    call: Index
    number: Index
    outputs: list[SomeTensor]
    foreseen: Gradients | None = None


class ChangedState(Struct, forbid_unknown_fields=True):
    """What a call changed of a module: parameters that were replaced, buffers, and modes."""

    replaced: list[str]
    buffers: list[tuple[MemberPath, SomeTensor, bool]]
    modes: list[tuple[str, bool]] = []


class Response(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """What the worker sends.

    Attributes:
        id: the number of the request.
        released: places in the shared memory that the worker needs no more.
        tensors: dtypes and shapes of those in the shared memory.
        called: the first forbidden function that was called.
        unsendable: what can't be sent of a value.
        error: what the student's code raised.
        printed: what it printed, if that is kept.
        grad: whether gradients were wanted after it ran.
        moved: whether it drew from the global generator.
        generators: whether it drew from each of those among the arguments.
        cost: operations, elements and the largest tensor.
        values: what each call returned.
        results: the numbers of the results by which the worker watches them.
        moved_away: arguments that got another form or place.
        learning: arguments that gradients are wanted for now, and were not before.
        changed_lists: lists among the arguments that hold other things now.
        overwritten: whether one of these calls changed what another one of them returned.
        stale: the numbers of earlier results that changed.
        names: of the functions and classes in a file.
        tried: what a file attempted while it was loaded, by kind and name.
    """

    id: Index = 0
    released: list[Index] = []
    tensors: Annotated[list[TensorForm], Meta(max_length=MAX_TENSORS)] = []
    called: str | None = None
    unsendable: str | None = None
    error: ErrorForm | None = None
    printed: str = ""
    grad: bool | None = None
    moved: bool = False
    generators: list[bool] = []
    cost: tuple[Index, Index, Index] | None = None
    values: list[AnyValue] = []
    graphs: list[GraphForm] = []
    results: list[Index] = []
    moved_away: list[Index] = []
    learning: list[Index] = []
    changed_lists: list[Index] = []
    overwritten: bool = False
    stale: list[Index] = []
    state: ChangedState | None = None
    gradients: Gradients | None = None
    names: list[ShortName] = []
    tried: Annotated[list[tuple[str, ShortName]], Meta(max_length=MAX_ATTEMPTS)] = []


# Frames

_LENGTHS = struct.Struct("!II")
_CHUNK = 1 << 16  # a much larger buffer takes the system longer to provide
ALIGNED = 16
"""Each tensor of a response begins at a multiple of so many bytes."""

_encode = msgspec.json.Encoder().encode
_decode_request = msgspec.json.Decoder(Request).decode
_decode_response = msgspec.json.Decoder(Response).decode


def send(
    channel: socket.socket,
    message: Request | Response,
    size: int = 0,
    left: Left | None = None,
    seconds: float | None = None,
) -> None:
    """Send a message.

    Args:
        channel: a stream socket.
        message: what to send.
        size: how many bytes its tensors take in the shared memory.
        left: tells how long the other side may take to receive it; None for ever.
        seconds: for how long one may wait before that is asked.

    Raises:
        Unsendable: it is larger than a message may be.
        TimeoutError: the time is over.
        OSError: the connection is broken.
    """
    try:
        text = _encode(message)
    except UnicodeEncodeError:
        raise Unsendable("a text that is no Unicode") from None
    if len(text) > MAX_HEADER:
        raise Unsendable("it is too large")
    frame = _LENGTHS.pack(len(text), size) + text
    if left is None:
        channel.sendall(frame)
        return
    rest = memoryview(frame)
    channel.settimeout(left() if seconds is None else seconds)
    while rest:
        try:
            rest = rest[channel.send(rest) :]
        except TimeoutError:  # there may be more time left than it seemed
            channel.settimeout(left())


def receive(
    channel: socket.socket, left: Left | None = None, seconds: float | None = None
) -> tuple[bytearray, int]:
    """Receive a frame; return its message as text, and how many bytes its tensors take.

    Args:
        channel: a stream socket.
        left: tells how long it may take until the whole frame is here; None for ever.
        seconds: for how long one may wait before that is asked.

    Raises:
        ProtocolError: what arrived isn't a frame, or is larger than a frame may be.
        Closed: the other side closed the connection.
        TimeoutError: the time is over.
        OSError: the connection is broken.
    """
    data, end = bytearray(), _LENGTHS.size
    if left is not None:
        channel.settimeout(left() if seconds is None else seconds)
    while len(data) < end:
        # The buffer grows with what arrives: a length alone costs the receiver nothing.
        try:
            part = channel.recv(_CHUNK)
        except TimeoutError:
            assert left is not None
            channel.settimeout(left())  # there may be more time left than it seemed
            continue
        if not part:
            raise Closed
        before = len(data)
        data += part
        if before < _LENGTHS.size <= len(data):
            length, size = _LENGTHS.unpack_from(data)
            if length > MAX_HEADER or size > MAX_PAYLOAD:
                raise ProtocolError("the frame is too large")
            end += length
        if left is not None and len(data) < end:
            channel.settimeout(left())
    if len(data) != end:
        raise ProtocolError("more than one frame")  # each side waits for the other's response
    return data[_LENGTHS.size :], size


def read_request(text: bytes | bytearray) -> Request:
    """Return the request that the trusted side sent."""
    return _decode_request(text)


def read_response(text: bytes | bytearray) -> Response:
    """Return the response that a worker sent.

    Raises:
        ProtocolError: it is none.
    """
    _check_depth(text)
    response: Response = _decoded(_decode_response, text)
    return response


def _decoded(decode: Callable[[Any], Any], text: bytes | bytearray) -> Any:
    try:
        return decode(text)
    except Exception as error:  # many kinds, and all mean the same
        raise ProtocolError(f"unreadable message ({type(error).__name__})") from None


_NOT_BRACKETS = bytes({*range(256)} - {*b"[]{}"})
# A text, closed or not, or a bracket. Possessive, so that no input takes more than one pass.
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


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
            raise ProtocolError("the message is nested too deeply")


# Small checks of what can't be declared above. Each raises ProtocolError when it fails.


def numbered(number: int, count: int) -> int:
    """Return `number` if it is less than `count`."""
    if number >= count:
        raise ProtocolError("a number is out of range")
    return number


def named(name: str, names: Any) -> str:
    """Return `name` if it is one of `names`."""
    if name not in names:
        raise ProtocolError("a name isn't known")
    return name


def identifier(name: str) -> str:
    """Return `name` if it could be a name in a program."""
    if not name.isidentifier():
        raise ProtocolError("a name isn't an identifier")
    return name


_WITHOUT_ENDS_AND_TABS = str.maketrans("", "", "\n\t")


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Cut a text and replace what could control a terminal; line ends and tabs stay."""
    cut = text[:limit]
    if cut.translate(_WITHOUT_ENDS_AND_TABS).isprintable():
        return cut
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in cut
    )


# Memory that both sides see. Tensors of requests lie in its first part, of responses in the second.

RESPONSES_AT = MAX_PAYLOAD
"""Where the second part begins."""

SIZE = 2 * MAX_PAYLOAD
"""Bytes of both parts. The system provides a page of them when it is first written."""

memcmp = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None).memcmp
memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
"""Compares the bytes at two addresses; 0 if they are the same."""

_copy = ctypes.memmove
_address = torch._C.TensorBase.data_ptr


class Memory:
    """One side's view of the memory that it shares with the other.

    The student's code works on its arguments and weights where they lie. So whether it changed them
    is no question to a worker: the trusted side looks, and compares with its own.

    Args:
        mapping: SIZE bytes.

    Attributes:
        bytes: the memory itself. The other side can change it at any time.
    """

    def __init__(self, mapping: mmap.mmap) -> None:
        self._mapping = mapping
        self.bytes = memoryview(mapping)
        self._address = int(_address(torch.frombuffer(mapping, dtype=torch.uint8)))

    @classmethod
    def attached(cls, handle: int | str) -> Memory:
        """Return memory that the other side has made: a descriptor, on Windows a name."""
        if sys.platform == "win32":
            return cls(mmap.mmap(-1, SIZE, tagname=str(handle)))
        return cls(mmap.mmap(int(handle), SIZE))

    def write_all(self, offsets: Iterable[int], tensors: Sequence[Tensor]) -> None:
        """Copy the bytes of contiguous tensors to these places."""
        for offset, tensor in zip(offsets, tensors, strict=False):
            _copy(self._address + offset, _address(tensor), tensor.nbytes)

    def write_response(self, tensors: Sequence[Tensor]) -> int:
        """Put a response's tensors where the trusted side looks; return how many bytes they take.

        Raises:
            Unsendable: they are too large.
        """
        sizes = [tensor.nbytes + -tensor.nbytes % ALIGNED for tensor in tensors]
        if sum(sizes) > MAX_PAYLOAD:  # with what lies between them
            raise Unsendable("it is too large")
        self.write_all(accumulate(sizes[:-1], initial=RESPONSES_AT), tensors)
        return sum(sizes)

    def holds(self, offset: int, tensor: Tensor) -> bool:
        """Return whether a place has the very bytes of a contiguous tensor."""
        return not memcmp(self._address + offset, _address(tensor), tensor.nbytes)

    def close(self) -> None:
        """Give it back; nothing of it can be read or written any more."""
        if not self._mapping.closed:
            del self._address  # to read it is an error now, and no signal of the system's
            self.bytes.release()
            self._mapping.close()
