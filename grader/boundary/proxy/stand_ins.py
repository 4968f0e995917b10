"""What stands, on the side of the tests, for things that stay with the student's code."""

from __future__ import annotations

import functools
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from torch import Tensor, nn

from grader.boundary.connection import Connection
from grader.boundary.failures import WorkerFailure
from grader.boundary.frames import ProtocolError
from grader.boundary.protocol.codec import SENT_DTYPES
from grader.boundary.protocol.wire import FloatValue, ReferenceValue, StudentsValue, identifier
from grader.code.batch import overwritten
from grader.errors import Mismatch
from grader.result import Status

if TYPE_CHECKING:
    from grader.boundary.proxy.caller import Caller
    from grader.boundary.proxy.modules import Twin


class Subject(NamedTuple):
    """What a request is about: something of the student's file, of a module's twin, of an object.

    Attributes:
        name: the function, method or attribute; empty for a module itself.
        path: the place of the module within its root.
        twin: what the worker knows of the root; None for a function of the file.
        root: the module that was made by a call.
        reference: the object.
    """

    name: str
    path: str = ""
    twin: Twin | None = None
    root: nn.Module | None = None
    reference: RemoteReference | None = None

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return self.name or self.path or type(self.root).__name__

    @property
    def is_of_file(self) -> bool:
        """Whether it stands in the student's file itself."""
        return self.twin is None and self.reference is None


class RemoteValue:
    """Stands for a value that stays in the worker. Only its type's name is known here."""


class PutIn(RemoteValue):
    """Stands at the end of a list that a call changed, for whatever is in it now."""


def remote_value(name: str) -> RemoteValue:
    """Return what stands for a value whose type has that name."""
    value: RemoteValue = type(name, (RemoteValue,), {})()
    return value


class RemoteReference(RemoteValue):
    """Stands for an object that stays in its worker, and can be handed to a later call there.

    Its plain fields are those that it had when it came back; a test holds them, so nothing that a
    worker does later changes them. Everything else is requested from the worker each time.
    """

    _caller: Caller
    _connection: Connection
    _number: int
    _fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in self._fields:
            return self._fields[name]
        return self._caller.attribute(Subject(name, reference=self))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        text = f"setting {type(self).__name__}.{name} from a test isn't supported"
        raise TypeError(text)

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"copying a {type(self).__name__} in a test isn't supported")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields.items())
        return f"{type(self).__name__}({fields})"


def reference(caller: Caller, connection: Connection, value: ReferenceValue) -> RemoteReference:
    """Return what stands for an object.

    Args:
        caller: asks for what isn't a field.
        connection: to the worker that has it.
        value: describes it.

    Raises:
        ProtocolError: it is described as none.
    """
    cls = _reference_class(identifier(value.name))
    found = cls.__new__(cls)
    about = {"_caller": caller, "_connection": connection, "_number": value.number}
    fields = dict(_field(name, field) for name, field in value.fields)
    found.__dict__.update(about | {"_fields": fields})
    connection.keep(value.number, found)
    return found


@functools.lru_cache(maxsize=256)
def _reference_class(name: str) -> type[RemoteReference]:
    return type(name, (RemoteReference,), {})


def _field(name: str, value: Any) -> tuple[str, Any]:
    if identifier(name).startswith("_"):
        raise ProtocolError("a field isn't public")
    return name, float(value.text) if type(value) is FloatValue else value


def living(connection: Connection, thing: object) -> Connection:
    """Return the connection to the worker that holds something.

    Raises:
        WorkerFailure: it has ended.
    """
    if connection.dead:
        text = f"The process that held this {type(thing).__name__} has ended."
        raise WorkerFailure(Status.CRASH, text)
    return connection


class StudentsContainer:
    """A list, tuple or dict that is in the worker one of a class of the student's."""


def container_of_class(value: Any, written: StudentsValue) -> Any:
    """Return a list, tuple or dict as one of a class with the name of the student's.

    Raises:
        ProtocolError: it has no name, or a field has none.
    """
    names = [identifier(name) for name in written.fields]
    if any(name.startswith("_") for name in names) or len(names) not in (0, len(value)):
        raise ProtocolError("a field has no name")
    kind: Any = type(value)
    return _container_class(kind, identifier(written.name), *names)(value)


@functools.lru_cache(maxsize=256)
def _container_class(kind: Any, name: str, *names: str) -> Any:
    fields = {name: property(itemgetter(place)) for place, name in enumerate(names)}
    return type(name, (StudentsContainer, kind), fields)


class _FormOnly(Tensor):
    """A tensor whose form can be read; whatever else a test does with it ends in a Mismatch."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Allow what looks at the form."""
        if getattr(func, "__name__", "") not in _FORM:
            raise cls._refusal([*args, *(kwargs or {}).values()])
        return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]

    @classmethod
    def _refusal(cls, values: list[Any]) -> Mismatch:
        """Return what a student reads where a test does something else with these values."""
        raise NotImplementedError


class Formal(_FormOnly):
    """A result without entries, on the meta device."""

    @classmethod
    def _refusal(cls, values: list[Any]) -> Mismatch:
        return Mismatch(_no_numbers(values))

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        """Return its form; torch's own way asks a quantised tensor for its scale."""
        return f"tensor(..., device='meta', size={tuple(self.shape)}, dtype={self.dtype})"


def _no_numbers(values: list[Any]) -> str:
    """Return what a student reads whose result can't be used as a test does with these values."""
    for value in values:
        if isinstance(value, Formal) and value.dtype not in SENT_DTYPES.values():
            return f"Your code returned a tensor of {value.dtype}, which can't be used here."
    return "Your code returned a tensor on the meta device: a shape, no numbers."


class Overwritten(_FormOnly):
    """A result that a later call has changed.

    In process a test that looks at it again finds what that call wrote. Here nothing that a test
    holds takes values from a worker later.
    """

    _called = ""

    @classmethod
    def _refusal(cls, values: list[Any]) -> Mismatch:
        return overwritten(cls._called)


def spoil(result: object, name: str) -> None:
    """Make an `Overwritten` of a result that a call of the function `name` has changed."""
    if isinstance(result, Tensor):
        result.__class__ = _overwritten_class(name)


@functools.lru_cache(maxsize=256)
def _overwritten_class(name: str) -> type[Overwritten]:
    return type("Overwritten", (Overwritten,), {"_called": name})


_FORM = {"__get__", "__repr__", "__format__", "__len__", "detach", "dim", "size", "stride", "numel"}
_FORM |= {"element_size", "is_floating_point", "is_complex", "as_subclass"}
