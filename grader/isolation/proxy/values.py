"""A test's values on their way to the worker, and a worker's values on their way to a test."""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from grader.batch import Call
from grader.errors import Mismatch
from grader.isolation.connection import Connection, WorkerFailure
from grader.isolation.protocol import MAX_TENSORS, Header, Packed, ProtocolError, Unsendable
from grader.isolation.protocol.checks import identifier, index, items
from grader.isolation.protocol.tensors import SENT_DTYPES
from grader.isolation.protocol.values import Packer, Unpacker, lists_in
from grader.result import Status


class RequestPacker(Packer):
    """Writes a test's values.

    Args:
        connection: to the worker that gets them.

    Attributes:
        arguments: the tensors among the values, and which of the request's tensors each is.
        lists: the lists among the arguments, and those in these.
        calls: what each of the request's calls brings to a graph.
        weights: the parameters of the module in question that want gradients, by name.
        generators: the random generators among the values.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self.arguments: list[tuple[Tensor, int]] = []
        self.lists: list[list[Any]] = []
        self.calls: list[Asked] = []
        self._inputs: list[Tensor] = []
        self.weights: dict[str, Tensor] = {}
        self.generators: list[torch.Generator] = []
        self._states: dict[int, int] = {}

    def tensor(self, tensor: Tensor) -> Packed:
        """Add an argument."""
        packed = super().tensor(tensor)
        if "t" in packed:
            self.arguments.append((tensor, packed["t"]))
            if tensor.requires_grad:
                packed |= {"grad": True, "leaf": tensor.is_leaf}
                self._inputs.append(tensor)
        return packed

    def call(self, call: Call, is_foreseen: bool) -> Packed:
        """Add the arguments of a call, and its upstream gradient if that shall be used."""
        self._inputs = []
        args = [self.pack(value) for value in call.args]
        kwargs = [[name, self.pack(value)] for name, value in call.kwargs.items()]
        self.lists += lists_in([*call.args, *call.kwargs.values()])
        upstream = call.upstream if is_foreseen and torch.is_grad_enabled() else None
        if upstream is None:
            asked, packed = Asked(self._inputs, None), None
        else:
            asked = Asked(self._inputs, upstream.detach().clone())
            packed = self.plain(upstream)
        self.calls.append(asked)
        return args, kwargs, packed

    def plain(self, tensor: Tensor) -> Packed:
        """Add a tensor that is no argument."""
        return super().tensor(tensor.detach())

    def other(self, value: object) -> Packed:
        """Add a random generator, by its state; name what the worker holds."""
        if isinstance(value, Held):
            return self._held(value)
        if isinstance(value, PutIn):
            raise Mismatch("Your code changed a list that it had been given.")
        if not isinstance(value, torch.Generator):
            return super().other(value)
        if id(value) not in self._states:  # one that is named twice stays one
            self._states[id(value)] = len(self.tensors)
            self.generators.append(value)
            self.tensors.append(value.get_state())
        return {"g": self._states[id(value)]}

    def container(self, value: object, depth: int) -> Packed:
        """Return a container; one that came from the worker with the name of its class."""
        packed = super().container(value, depth)
        return packed | {"as": type(value).__name__} if isinstance(value, OfStudents) else packed

    def _held(self, value: Held) -> Packed:
        if living(value._connection, value) is not self._connection:
            raise Unsendable(f"a {type(value).__name__} of another file")
        return {"h": value._number}


class Asked(NamedTuple):
    """What a call brings to its graph.

    Attributes:
        inputs: the tensors among its arguments that want gradients.
        upstream: that of a gradient which may be asked for later.
    """

    inputs: list[Tensor]
    upstream: Tensor | None


class AnswerUnpacker(Unpacker):
    """Reads a worker's values.

    Args:
        tensors: the frame's tensors.
        special: reads the kinds of values beyond plain ones.

    Attributes:
        numbered: the tensors among the values, by the place that they have in "results".
    """

    def __init__(
        self,
        tensors: list[Tensor],
        special: Callable[[Header, AnswerUnpacker], Any] | None = None,
    ) -> None:
        super().__init__(tensors)
        self._special = special
        self.numbered: dict[int, Tensor] = {}

    def tensor(self, packed: Header) -> Tensor:
        """Return a tensor, and note which result it is."""
        tensor = super().tensor(packed)
        if "r" in packed:
            self.numbered[index(packed["r"], MAX_TENSORS)] = tensor
        return tensor

    def form(self, packed: Packed) -> Tensor:
        """Return a tensor without data that no comparison takes for an answer."""
        return super().form(packed).as_subclass(Formal)

    def named(self, value: Any, packed: Header) -> Any:
        """Return a list, tuple or dict as one of a class with the name of the student's."""
        if type(value) not in (list, tuple, dict):
            raise ProtocolError("this can't be of a class of the student's")
        names = [identifier(name) for name in items(packed.get("names", []))]
        if any(name.startswith("_") for name in names) or len(names) not in (0, len(value)):
            raise ProtocolError("a field has no name")
        kind: Any = type(value)
        return _container_class(kind, identifier(packed["as"]), *names)(value)

    def special(self, packed: Header) -> Any:
        """Return a module, or a stand-in for something that can't be sent."""
        return super().special(packed) if self._special is None else self._special(packed, self)


class Formal(Tensor):
    """A result without data, on the meta device. Its form can be read; its numbers can't be used.

    Whatever a test does with it beyond looking at its form ends in a Mismatch.
    """

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Allow what looks at the form."""
        if getattr(func, "__name__", "") not in _FORM:
            raise Mismatch(_no_numbers([*args, *(kwargs or {}).values()]))
        return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        """Return its form; torch's own way asks a quantised tensor for its scale."""
        return f"tensor(..., device='meta', size={tuple(self.shape)}, dtype={self.dtype})"


def _no_numbers(values: list[Any]) -> str:
    """Return what a student reads whose result can't be used as a test does with these values."""
    for value in values:
        if isinstance(value, Formal) and value.dtype not in SENT_DTYPES.values():
            return f"Your code returned a tensor of {value.dtype}, which can't be used here."
    return "Your code returned a tensor on the meta device: a shape, no numbers."


_FORM = {"__get__", "__repr__", "__format__", "__len__", "detach", "dim", "size", "stride", "numel"}
_FORM |= {"element_size", "is_floating_point", "is_complex", "as_subclass"}


class OfStudents:
    """A list, tuple or dict that is in the worker one of a class of the student's."""


@functools.lru_cache(maxsize=256)
def _container_class(kind: Any, name: str, *names: str) -> Any:
    fields = {name: property(itemgetter(place)) for place, name in enumerate(names)}
    return type(name, (OfStudents, kind), fields)


class Foreign:
    """Stands for a value that stays in the worker. Only its type's name is known here."""


class PutIn(Foreign):
    """Stands at the end of a list that a call changed, for whatever is in it now."""


class Held(Foreign):
    """Stands for an object that its worker keeps, and that can be handed back to it."""

    _connection: Connection
    _number: int


def foreign(name: str) -> Foreign:
    """Return what stands for a value whose type has that name."""
    value: Foreign = type(name, (Foreign,), {})()
    return value


def living(connection: Connection, thing: object) -> Connection:
    """Return the connection to the worker that holds something.

    Raises:
        WorkerFailure: it has ended.
    """
    if connection.dead:
        text = f"The process that held this {type(thing).__name__} has ended."
        raise WorkerFailure(Status.CRASH, text)
    return connection
