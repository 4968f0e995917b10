"""Values on their way between a test and the student's code: one table, `CODECS`, says how.

Each side writes values with a packer and reads them with a reader. Those of requests and of
responses differ in what a tensor brings with it: an argument its part in a graph, a result the copy
by which later changes of it are noticed.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from operator import is_not
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor, nn

from grader.boundary.frames import ProtocolError
from grader.boundary.protocol.wire import (
    ALIGNED,
    FORM_NAMES,
    MAX_BUILT,
    MAX_DEPTH,
    MAX_DIMENSIONS,
    MAX_HEADER,
    MAX_NAME,
    MAX_PAYLOAD,
    MAX_TENSORS,
    MODULE,
    SENT_NAMES,
    AnyValue,
    Arguments,
    ArrayValue,
    DeviceValue,
    DictValue,
    DtypeValue,
    FloatValue,
    FormValue,
    GeneratorValue,
    ListValue,
    OutputValue,
    ReferenceValue,
    SizeValue,
    SomeTensor,
    StudentsValue,
    TensorForm,
    TensorValue,
    TupleValue,
    Unsendable,
    memcmp,
)

# Tensors and arrays as bytes

SENT_DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in SENT_NAMES}
"""The dtypes whose entries are sent."""

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in FORM_NAMES}
"""The dtypes that have a name here. Of those beyond SENT_DTYPES only the form is sent."""

NAMES = {dtype: name for name, dtype in DTYPES.items()}
"""The names of DTYPES."""

_NUMPY_DTYPES = {SENT_DTYPES[name]: numpy.dtype(name) for name in SENT_NAMES if name != "bfloat16"}
_FOR_BFLOAT16 = numpy.dtype("int16")

# Taken before a student's code can put anything else in their places.
_address = torch._C.TensorBase.data_ptr
_storage = torch._C.TensorBase.untyped_storage
_Storage: Any = torch._C.StorageBase
_storage_address: Callable[[Any], int] = _Storage.data_ptr
_storage_bytes: Callable[[Any], int] = _Storage.nbytes
_is_zeros = torch._C.TensorBase._is_zerotensor
_is_of_functorch = torch._C._functorch.is_functorch_wrapped_tensor
_OF_LAZY_LAYERS = nn.UninitializedParameter, nn.UninitializedBuffer
# As it is, where a metaclass has a property of this name.
_NAME: Callable[[type], str] = type.__dict__["__name__"].__get__


def class_name(cls: type) -> str:
    """Return what a class is called, as an identifier, whatever its metaclass would say."""
    name = _NAME(cls)[:MAX_NAME]
    if name.isidentifier():
        return name
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in f"_{name}"[:MAX_NAME])


def lies_in_memory(tensor: Tensor) -> bool:
    """Return whether a tensor's entries can be read where it says that they are.

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


def as_array(tensor: Tensor) -> numpy.ndarray[Any, Any]:
    """Return an array on the memory of a message's tensor."""
    return tensor.numpy()


def array_on(
    memory: Any, dtype: torch.dtype, shape: list[int], start: int = 0
) -> numpy.ndarray[Any, Any]:
    """Return an array whose entries lie in memory that can be written, for `tensor_on`.

    Args:
        memory: a buffer.
        dtype: one of SENT_DTYPES.
        shape: not without entries.
        start: where in the buffer they begin.
    """
    return numpy.ndarray(shape, _NUMPY_DTYPES.get(dtype, _FOR_BFLOAT16), memory, start)


def tensor_on(array: numpy.ndarray[Any, Any], dtype: torch.dtype) -> Tensor:
    """Return a tensor on the memory of an array, which lives as long as the tensor and its views.

    To make one so takes half as long as by torch's own ways, and it is a view of no other tensor.
    """
    tensor = torch.from_numpy(array)
    return tensor if dtype in _NUMPY_DTYPES else tensor.view(dtype)


def tensors_at(
    placed: list[tuple[str, list[int], int]],
    memory: memoryview,
    needed: dict[int, weakref.KeyedRef[int, Any]],
    gone: list[weakref.KeyedRef[int, Any]],
) -> list[Tensor]:
    """Return a request's tensors on the memory where they lie.

    Args:
        placed: dtype, shape and place of each.
        memory: what both sides see.
        needed: by place, what refers to what is there; added to.
        gone: those of them that nothing refers to any more are added when that is so.
    """
    found = []
    for name, shape, place in placed:
        dtype = SENT_DTYPES[name]
        size = math.prod(shape) * dtype.itemsize
        if not size:
            found.append(torch.empty(shape, dtype=dtype))
            continue
        lying = array_on(memory[place : place + size], dtype, shape)
        # The tensor's storage holds the array, as do its views, and graphs.
        needed[place] = weakref.KeyedRef(lying, gone.append, place)
        found.append(tensor_on(lying, dtype))
    return found


def tensors_of(forms: list[TensorForm], payload: bytearray | memoryview) -> list[Tensor]:
    """Return a response's tensors, on the memory of `payload`.

    Raises:
        ProtocolError: they don't fit it.
    """
    found, start = [], 0
    for name, shape in forms:
        dtype, count = SENT_DTYPES[name], math.prod(shape)
        end = start + count * dtype.itemsize
        if count >= 1 << 50 or end > len(payload):
            raise ProtocolError("a tensor is longer than the frame")
        found.append(_tensor_at(payload, dtype, shape, start))
        start = end + -end % ALIGNED
    if start != len(payload):
        raise ProtocolError("the frame is longer than its tensors")
    return found


def _tensor_at(
    payload: bytearray | memoryview, dtype: torch.dtype, shape: list[int], start: int
) -> Tensor:
    if 0 in shape:
        try:
            return torch.empty(shape, dtype=dtype)
        except RuntimeError:  # its other sizes are huge
            raise ProtocolError("a shape is too large") from None
    if dtype != torch.bool:
        return tensor_on(array_on(payload, dtype, shape, start), dtype)
    # A byte such as 2 is neither True nor False, and sum() and any() would disagree about it.
    return tensor_on(array_on(payload, torch.uint8, shape, start), torch.uint8) != 0


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
    a, b = _in_a_row(a), _in_a_row(b)
    return not memcmp(_address(a), _address(b), a.nbytes)


def _in_a_row(tensor: Tensor) -> Tensor:
    """Return a tensor whose bytes lie one after the other; the same memory, where they do."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _sizes(shape: list[int]) -> list[int]:
    if math.prod(shape) >= 1 << 50:
        raise ProtocolError("a shape is too large")
    return shape


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


# Writing and reading any value


class Packer:
    """Writes values and gathers their tensors.

    Attributes:
        tensors: what goes into the memory beside the message.
    """

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self._bytes = 0

    def pack(self, value: Any, depth: int = 0) -> AnyValue:
        """Return what stands for a value in a message.

        Raises:
            Unsendable: it can't be sent.
        """
        if depth > MAX_DEPTH // 3:
            raise Unsendable("it is nested too deeply")
        write = _WRITERS.get(type(value))
        if write is not None:
            return write(self, value, depth + 1)
        # As the plain things that they are: a subclass may have methods of its own.
        for kind, write in _WRITERS_OF_SUBCLASSES:
            if isinstance(value, kind):
                return write(self, value, depth + 1)
        return self.special(value)

    def special(self, value: Any) -> AnyValue:
        """Return what stands for a value that isn't in the table."""
        raise Unsendable(f"a {type(value).__name__}")

    def of_class(self, value: Any, written: ListValue | TupleValue | DictValue) -> AnyValue:
        """Return what stands for a container of a class of its own."""
        return written

    def tensor(self, tensor: Tensor) -> SomeTensor:
        """Add a tensor, and return what stands for it.

        Raises:
            Unsendable: it isn't a plain tensor, or is too large.
        """
        name = NAMES.get(tensor.dtype)
        if name is None:
            raise Unsendable(f"a tensor of {tensor.dtype}")
        if tensor.dim() > MAX_DIMENSIONS:
            raise Unsendable(f"a tensor with {tensor.dim()} dimensions")
        if tensor.is_meta or name not in SENT_DTYPES:
            return FormValue(name, list(tensor.shape))
        if tensor.layout is not torch.strided or not tensor.is_cpu:
            raise Unsendable("a tensor that isn't a plain dense one on the CPU")
        plain, order = tensor.detach(), None
        self._add_bytes(math.prod(tensor.shape) * tensor.dtype.itemsize)
        if plain.is_neg():
            plain = plain.resolve_neg()
        if not plain.is_contiguous():
            # `view` fails or not by the order of the dimensions in memory, so that order is kept.
            order = order_in_memory(plain)
            plain = plain.permute(order).contiguous()
            order = None if order == sorted(order) else order
        self.tensors.append(plain)
        return TensorValue(len(self.tensors) - 1, order)

    def _add_bytes(self, count: int) -> None:
        # `nbytes` overflows where a single number has been expanded far; so it is counted.
        self._bytes += count
        if self._bytes > MAX_PAYLOAD or len(self.tensors) >= MAX_TENSORS:
            raise Unsendable("it is too large")

    def array(self, value: numpy.ndarray[Any, Any]) -> AnyValue:
        """Add a NumPy array, and return what stands for it."""
        plain = numpy.ndarray.view(value, numpy.ndarray)
        if plain.dtype not in _NUMPY_DTYPES.values() or plain.ndim > MAX_DIMENSIONS:
            return self.special(value)
        self._add_bytes(math.prod(plain.shape) * plain.dtype.itemsize)
        self.tensors.append(torch.from_numpy(numpy.array(plain, order="C")))
        return ArrayValue(len(self.tensors) - 1, plain.flags.writeable)


def _few(kind: Any, values: Any) -> list[Any]:
    # More can't be said in a message; this keeps a giant list from being walked to its end.
    if kind.__len__(values) > MAX_HEADER // 2:
        raise Unsendable("it has too many items")
    return list(kind.__iter__(values))


def _write_as_it_is(packer: Packer, value: Any, depth: int) -> AnyValue:
    plain: AnyValue = value
    return plain


def _write_int(packer: Packer, value: int, depth: int) -> AnyValue:
    whole = int.__int__(value)
    if not -(1 << 63) <= whole < 1 << 63:
        raise Unsendable("an integer of more than 64 bits")
    return whole


def _write_float(packer: Packer, value: float, depth: int) -> AnyValue:
    plain = float.__float__(value)
    return plain if math.isfinite(plain) else FloatValue(float.__repr__(plain))  # type: ignore[arg-type]


def _write_text(packer: Packer, value: str, depth: int) -> AnyValue:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unsendable("a text that is no Unicode") from None
    return text


def _write_list(packer: Packer, value: list[Any], depth: int) -> AnyValue:
    written = ListValue([packer.pack(v, depth) for v in _few(list, value)])
    return written if type(value) is list else packer.of_class(value, written)


def _write_tuple(packer: Packer, value: tuple[Any, ...], depth: int) -> AnyValue:
    written = TupleValue([packer.pack(v, depth) for v in _few(tuple, value)])
    return written if type(value) is tuple else packer.of_class(value, written)


def _write_dict(packer: Packer, value: dict[Any, Any], depth: int) -> AnyValue:
    pairs = dict.items(value) if _few(dict, value) else ()
    written = DictValue([(packer.pack(k, depth), packer.pack(v, depth)) for k, v in pairs])
    return written if type(value) is dict else packer.of_class(value, written)


def _write_dtype(packer: Packer, value: torch.dtype, depth: int) -> AnyValue:
    return DtypeValue(NAMES[value]) if value in NAMES else packer.special(value)


class ValueReader:
    """Reads values. One that knows more kinds has a method for each of those, or for `special`.

    Args:
        tensors: the message's.

    Attributes:
        tensors: the same.
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors if isinstance(tensors, Received) else Received(tensors)

    def read(self, value: AnyValue) -> Any:
        """Return what stands for a value in a message as that value.

        Raises:
            ProtocolError: it stands for none.
        """
        read = _READERS.get(type(value))
        if read is not None:
            return read(self, value)
        return value if type(value) in _AS_THEY_ARE else self.special(value)

    def special(self, value: AnyValue) -> Any:
        """Return a value that isn't in the table."""
        raise ProtocolError("a value isn't known here")

    def plain(self, value: SomeTensor) -> Tensor:
        """Return a tensor that is neither argument nor result."""
        if type(value) is TensorValue:
            return self._sent(value)
        if type(value) is FormValue:
            return self.form(value)
        raise ProtocolError("a tensor was expected")

    def tensor(self, value: TensorValue) -> Tensor:
        """Return a tensor."""
        return self._sent(value)

    def _sent(self, value: TensorValue) -> Tensor:
        tensor = self.tensors.named(value.number)
        if value.order is None:
            return tensor
        if sorted(value.order) != list(range(tensor.dim())):
            raise ProtocolError("an order of dimensions isn't one")
        return in_order(tensor, value.order)

    def array(self, value: ArrayValue) -> Any:
        """Return a NumPy array."""
        tensor = self.tensors.named(value.number)
        if tensor.dtype not in _NUMPY_DTYPES:
            raise ProtocolError("NumPy has no such dtype")
        found = as_array(tensor)
        if not value.is_writable:
            found.flags.writeable = False
        return found

    def form(self, value: FormValue) -> Tensor:
        """Return a tensor without entries (on the meta device) of the given dtype and shape.

        Raises:
            ProtocolError: it would be too large even so.
        """
        return torch.empty(_sizes(value.shape), dtype=DTYPES[value.dtype], device="meta")


class Received(list[Tensor]):
    """The tensors of a message, and what is built of them.

    Each time one is named it counts: as entry of a list, as a buffer, with its dimensions turned.
    Whoever reads it may make copies of them all.

    Attributes:
        built: the bytes that were named so far.
    """

    built = 0

    def named(self, number: int) -> Tensor:
        """Return a tensor by its number.

        Raises:
            ProtocolError: there is none, or too much was named.
        """
        if number >= len(self):
            raise ProtocolError("a tensor isn't there")
        tensor = self[number]
        self.built += tensor.nbytes
        if self.built > MAX_BUILT:
            raise ProtocolError("too much is made of the tensors")
        return tensor


def _read_list(reader: ValueReader, value: ListValue) -> Any:
    return [reader.read(each) for each in value.items]


def _read_tuple(reader: ValueReader, value: TupleValue) -> Any:
    return tuple(reader.read(each) for each in value.items)


def _read_dict(reader: ValueReader, value: DictValue) -> Any:
    found = {}
    for written, each in value.items:
        key = reader.read(written)
        if not isinstance(key, str | int | float | bool | None):
            raise ProtocolError("a key isn't plain")
        found[key] = reader.read(each)
    return found


class Codec(NamedTuple):
    """How values of a kind are written and read.

    Attributes:
        kind: their type.
        write: takes a packer, the value and its depth; returns what stands for it.
        form: the type of that.
        read: takes a reader and what stands for the value; returns the value.
    """

    kind: Any
    write: Callable[[Any, Any, int], AnyValue]
    form: Any = None
    read: Callable[[Any, Any], Any] | None = None


CODECS = (
    Codec(type(None), _write_as_it_is),
    Codec(bool, _write_as_it_is),
    Codec(int, _write_int),
    Codec(float, _write_float, FloatValue, lambda reader, value: float(value.text)),
    Codec(str, _write_text),
    Codec(Tensor, lambda p, v, _: p.tensor(v), TensorValue, lambda r, v: r.tensor(v)),
    Codec(nn.Parameter, lambda p, v, _: p.tensor(v), FormValue, lambda r, v: r.form(v)),
    Codec(numpy.ndarray, lambda p, v, _: p.array(v), ArrayValue, lambda r, v: r.array(v)),
    Codec(torch.dtype, _write_dtype, DtypeValue, lambda reader, value: DTYPES[value.name]),
    Codec(
        torch.device,
        lambda packer, value, _: DeviceValue(str(value)),  # type: ignore[arg-type]
        DeviceValue,
        lambda reader, value: torch.device(value.name),
    ),
    Codec(
        torch.Size,
        lambda packer, value, _: SizeValue([int(size) for size in value]),
        SizeValue,
        lambda reader, value: torch.Size(_sizes(value.sizes)),
    ),
    Codec(list, _write_list, ListValue, _read_list),
    Codec(tuple, _write_tuple, TupleValue, _read_tuple),
    Codec(dict, _write_dict, DictValue, _read_dict),
)
"""All kinds of values that go both ways. What one side alone sends is in its packer's `special`."""

_WRITERS = {codec.kind: codec.write for codec in CODECS}
_WRITERS_OF_SUBCLASSES = [
    (codec.kind, codec.write) for codec in CODECS if codec.kind is not type(None)
]
_READERS: dict[Any, Callable[[Any, Any], Any]] = {
    codec.form: codec.read for codec in CODECS if codec.read is not None
}
_AS_THEY_ARE = frozenset({bool, int, float, str, type(None)})


# Requests: arguments, as a test gives them and as the student's code gets them


class RequestPacker(Packer):
    """Writes a test's values.

    Attributes:
        arguments: the tensors and arrays among the values, and which of the request's tensors each
            is.
        lists: the lists among the arguments, and those in these.
        graphs: what each of the request's calls brings to a graph.
        weights: the parameters of the module in question that want gradients, by name.
        generators: the random generators among the values.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arguments: list[tuple[Any, int]] = []
        self.lists: list[list[Any]] = []
        self.graphs: list[GraphInputs] = []
        self.weights: dict[str, Tensor] = {}
        self.generators: list[torch.Generator] = []
        self._inputs: list[Tensor] = []
        self._states: dict[int, int] = {}

    def calls(
        self, calls: Iterable[tuple[tuple[Any, ...], dict[str, Any], Any]], uses_upstream: bool
    ) -> list[Arguments]:
        """Return the arguments of calls, and the upstream gradients that will be asked for.

        Args:
            calls: arguments, arguments by name, and an upstream gradient or None.
            uses_upstream: whether to send that.

        Raises:
            Unsendable: one of them can't be sent.
        """
        return [
            self._call(args, kwargs, upstream if uses_upstream else None)
            for args, kwargs, upstream in calls
        ]

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], upstream: Any) -> Arguments:
        self._inputs = []
        written = Arguments(
            [self.pack(value) for value in args],
            [(name, self.pack(value)) for name, value in kwargs.items()],
        )
        self.lists += lists_in([*args, *kwargs.values()])
        kept = None if upstream is None else upstream.detach().clone()
        self.graphs.append(GraphInputs(self._inputs, kept))
        if upstream is not None:
            written.upstream = self.plain(upstream)
        return written

    def tensor(self, tensor: Tensor) -> SomeTensor:
        """Add an argument."""
        written = super().tensor(tensor)
        if type(written) is TensorValue:
            self.arguments.append((tensor, written.number))
            if tensor.requires_grad:
                written.grad, written.leaf = True, tensor.is_leaf
                self._inputs.append(tensor)
        return written

    def array(self, value: numpy.ndarray[Any, Any]) -> AnyValue:
        """Add an argument."""
        written = super().array(value)
        if type(written) is ArrayValue:
            self.arguments.append((value, written.number))
        return written

    def plain(self, tensor: Tensor) -> SomeTensor:
        """Add a tensor that is no argument."""
        return super().tensor(tensor.detach())

    def generator(self, value: torch.Generator) -> GeneratorValue:
        """Add a random generator, by its state; one that is named twice stays one."""
        if id(value) not in self._states:
            self._states[id(value)] = len(self.tensors)
            self.generators.append(value)
            self.tensors.append(value.get_state())
        return GeneratorValue(self._states[id(value)])


class GraphInputs(NamedTuple):
    """What a call brings to its graph.

    Attributes:
        inputs: the tensors among its arguments that want gradients.
        upstream: that of a gradient which may be asked for later.
    """

    inputs: list[Tensor]
    upstream: Tensor | None


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


class ReceivedCall(NamedTuple):
    """A call that a request asks for.

    Attributes:
        args: its arguments.
        kwargs: those by name.
        leaves: the tensors among them that gradients are asked for.
        upstream: that of a gradient which may be asked for later.
    """

    args: list[Any]
    kwargs: dict[str, Any]
    leaves: list[Tensor]
    upstream: Tensor | None


class RequestReader(ValueReader):
    """Reads the values of one request, for the student's code.

    Args:
        tensors: those that it brings; they lie in memory that the other side sees.
        objects: those that it can name.
        names: what stands in the student's file.

    Attributes:
        generators: random generators among the arguments, and their states from before.
    """

    def __init__(
        self, tensors: list[Tensor], objects: dict[int, object], names: dict[str, Any]
    ) -> None:
        super().__init__(tensors)
        self._objects = objects
        self._names = names
        self.generators: list[tuple[torch.Generator, Tensor]] = []
        self._leaves: list[Tensor] = []
        self._made: dict[int, torch.Generator] = {}
        self._given: list[tuple[Any, tuple[Any, ...]]] = []
        self._lists: list[tuple[list[Any], list[Any]]] = []

    def calls(self, written: list[Arguments]) -> list[ReceivedCall]:
        """Return what is to be called with what."""
        return [self._call(arguments) for arguments in written]

    def _call(self, written: Arguments) -> ReceivedCall:
        self._leaves = []
        args = [self.read(value) for value in written.args]
        kwargs = {name: self.read(value) for name, value in written.kwargs}
        lists = lists_in([*args, *kwargs.values()])
        self._lists += [(each, [*list.__iter__(each)]) for each in lists]
        upstream = None if written.upstream is None else self.plain(written.upstream)
        return ReceivedCall(args, kwargs, self._leaves, upstream)

    def tensor(self, value: TensorValue) -> Tensor:
        """Return a tensor argument; in a graph if the sender's was in one."""
        tensor = self._sent(value)
        if value.grad:
            leaf = tensor.requires_grad_() if value.leaf else own(tensor).requires_grad_()
            self._leaves.append(leaf)
            if not value.leaf:
                with torch.enable_grad():
                    apply: Callable[..., Tensor] = _Given.apply
                    tensor = apply(leaf, [tensor])
        self._given.append((tensor, _place(tensor)))
        return tensor

    def _sent(self, value: TensorValue) -> Tensor:
        tensor = super()._sent(value)
        return tensor if value.order is None else own(tensor)

    def array(self, value: ArrayValue) -> Any:
        """Return an array argument."""
        found = super().array(value)
        self._given.append((found, _place(found)))
        return found

    def special(self, value: AnyValue) -> Any:
        """Return an object that is kept here, or a generator in the sender's state."""
        if type(value) is ReferenceValue:
            return self._objects[value.number]
        if type(value) is GeneratorValue:
            return self._generator(value)
        if type(value) is StudentsValue:
            return self._of_class(self.read(value.plain), value.name)
        return super().special(value)

    def _of_class(self, value: Any, name: str) -> Any:
        """Return a container as one of a class of the student's, where that is still to be had."""
        cls: Any = self._names.get(name)
        kind: Any = type(value)
        if not isinstance(cls, type) or not issubclass(cls, kind):
            return value
        if kind is tuple:
            return kind.__new__(cls, value)
        new = kind.__new__(cls)
        (kind.extend if kind is list else kind.update)(new, value)
        return new

    def _generator(self, value: GeneratorValue) -> torch.Generator:
        number = value.state
        if number not in self._made:
            generator = self._made[number] = torch.Generator()
            generator.set_state(self.tensors[number])
            self.generators.append((generator, self.tensors[number]))
        return self._made[number]

    def changed_arguments(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the arguments that got another form or place, or a graph.

        Whether their entries changed, the other side sees.

        Returns:
            Those, and the numbers of those of which code asked for gradients, and did no more.
        """
        moved: list[int] = []
        learning: list[int] = []
        for number, (value, place) in enumerate(self._given):
            if (now := _place(value)) != place:
                only_learns = (
                    now == (*place[:-1], True) and torch.is_tensor(value) and value.is_leaf
                )
                (learning if only_learns else moved).append(number)
        return moved, learning

    def changed_lists(self) -> list[int]:
        """Return the numbers of the lists among the arguments that hold other things now."""
        return [
            number
            for number, (value, before) in enumerate(self._lists)
            if list.__len__(value) != len(before) or any(map(is_not, list.__iter__(value), before))
        ]


class _Given(torch.autograd.Function):
    """Makes of an argument's memory a tensor of a graph that isn't its leaf."""

    @staticmethod
    def forward(ctx: Any, leaf: Tensor, given: list[Tensor]) -> Tensor:
        return given.pop()

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        return *upstream, None


def _place(value: Any) -> tuple[Any, ...]:
    if type(value) is numpy.ndarray:
        return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype
    return value.data_ptr(), value.shape, value.stride(), value.requires_grad


# Responses: results, as the student's code returns them and as a test gets them


class ResponsePacker(Packer):
    """Writes the student's values: tensors with their place in the graph.

    Attributes:
        outputs: the tensors that a gradient can come back to.
        written_outputs: what stands for them; among the values they are named by number.
        results: all tensors among the values, with the copies that are sent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.outputs: list[Tensor] = []
        self.written_outputs: list[SomeTensor] = []
        self.results: list[tuple[Tensor, Tensor]] = []

    def tensor(self, tensor: Tensor) -> Any:
        """Add a tensor as a plain one, whatever subclass of Tensor it was."""
        with torch._C.DisableTorchFunctionSubclass():
            plain = readable(tensor)
            written = super().tensor(plain)
            if type(written) is not TensorValue:
                return written
            written.result = len(self.results)
            copy = self.tensors[written.number] = self.tensors[written.number].clone()
            order = written.order
            self.results.append((plain, in_order(copy, order) if order else copy))
            if not plain.requires_grad:
                return written
            self.outputs.append(plain)
            self.written_outputs.append(written)
            return OutputValue(len(self.outputs) - 1)

    def plain(self, tensor: Tensor | None) -> SomeTensor:
        """Add a parameter, a buffer or a gradient, which is no result of a call."""
        if tensor is None:
            return None
        with torch._C.DisableTorchFunctionSubclass():
            return super().tensor(readable(tensor).detach())

    def of_class(self, value: Any, written: ListValue | TupleValue | DictValue) -> AnyValue:
        """Return what stands for a container, with its class if that is one of the student's."""
        cls = type(value)
        if cls.__module__ != MODULE:
            return written
        fields = getattr(cls, "_fields", ()) if type(written) is TupleValue else ()
        return StudentsValue(written, class_name(cls), [*fields])


def readable(tensor: Tensor) -> Tensor:
    """Return a tensor as a plain one, whatever subclass of Tensor it is of.

    Raises:
        Unsendable: its entries can't be read; the text says what it is.
    """
    plain = tensor if type(tensor) is Tensor else _as_plain(tensor)
    if type(plain) is Tensor and not plain.is_nested:
        if plain.layout is not torch.strided or plain.is_meta or lies_in_memory(plain):
            return plain  # what isn't dense has a sentence of its own
        if _is_zeros(plain):
            return plain.clone()
    raise Unsendable(_oddity(tensor, plain))


def _as_plain(tensor: Tensor) -> Tensor | None:
    if isinstance(tensor, _OF_LAZY_LAYERS):
        return None
    try:
        return tensor.as_subclass(Tensor)
    except Exception:
        return None


def _oddity(tensor: Tensor, plain: Tensor | None) -> str:
    """Return what a tensor is that can't be read."""
    if plain is not None and plain.is_nested:
        return "a nested tensor"
    if _is_of_functorch(tensor):
        return "a tensor of torch.func that was kept for too long"
    if isinstance(tensor, _OF_LAZY_LAYERS):
        return "a tensor of a lazy layer (LazyLinear), which has no entries before its first call"
    of_class = "" if type(tensor) is Tensor else f" of the class {class_name(type(tensor))}"
    return f"a tensor{of_class} whose numbers can't be read"


class ResponseReader(ValueReader):
    """Reads a worker's values, for a test.

    Args:
        tensors: the response's.

    Attributes:
        results: the tensors among the values, by the number that the worker gave them.
        outputs: the tensors at which the calls' graphs end.
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        super().__init__(tensors)
        self.results: dict[int, Tensor] = {}
        self.outputs: list[Tensor] = []

    def tensor(self, value: TensorValue) -> Tensor:
        """Return a tensor, and note which result it is."""
        tensor = self._sent(value)
        if value.result is not None:
            self.results[value.result] = tensor
        return tensor
