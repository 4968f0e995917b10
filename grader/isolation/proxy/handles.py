"""Objects of the student's classes, which stay in their worker: a config, a cache."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NoReturn

from grader.isolation.connection import Connection
from grader.isolation.protocol import (
    MAX_FIELDS,
    MAX_HANDLES,
    MAX_NUMBER,
    MAX_TEXT,
    Header,
    Packed,
    ProtocolError,
)
from grader.isolation.protocol.checks import identifier, index, items
from grader.isolation.protocol.values import Unpacker
from grader.isolation.proxy.twin import Target
from grader.isolation.proxy.values import Held

if TYPE_CHECKING:
    from grader.isolation.proxy.caller import Caller


class Handle(Held):
    """Stands for an object that stays in its worker, and can be handed to a later call there.

    Its plain fields are those that it had when it came back; a test holds them, so nothing that a
    worker does later changes them. Everything else is asked of the worker each time.
    """

    _caller: Caller
    _fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in self._fields:
            return self._fields[name]
        return self._caller.attribute(Target(name, held=self))

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


class Handles:
    """Makes the handles of one answer.

    Args:
        caller: asks for what isn't a field.
        connection: to the worker that answers.
    """

    def __init__(self, caller: Caller, connection: Connection) -> None:
        self._caller = caller
        self._connection = connection
        self._count = 0

    def handle(self, packed: Header) -> Handle:
        """Return what stands for an object.

        Raises:
            ProtocolError: it is described as none, or there are too many.
        """
        self._count += 1
        if self._count > MAX_HANDLES:
            raise ProtocolError("too many objects")
        cls = _handle_class(identifier(packed["x"]))
        handle = cls.__new__(cls)
        number, fields = index(packed["h"], MAX_NUMBER), read_fields(packed["fields"])
        about = {"_caller": self._caller, "_connection": self._connection, "_number": number}
        handle.__dict__.update(about | {"_fields": fields})
        self._connection.keep(number, handle)
        return handle


@functools.lru_cache(maxsize=256)
def _handle_class(name: str) -> type[Handle]:
    return type(name, (Handle,), {})


def read_fields(packed: Packed) -> dict[str, Any]:
    """Return plain fields by name.

    Raises:
        ProtocolError: they are none, or too many.
    """
    pairs = [items(pair, 2) for pair in items(packed)]
    if len(pairs) > MAX_FIELDS:
        raise ProtocolError("an object has too many fields")
    return dict(_field(*pair) for pair in pairs)


def _field(name: Packed, packed: Packed) -> tuple[str, Any]:
    value = Unpacker([]).unpack(packed)
    if identifier(name).startswith("_") or not isinstance(value, int | float | str | None):
        raise ProtocolError("a field isn't plain")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise ProtocolError("a field is too long")
    return name, value
