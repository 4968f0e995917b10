"""Builds the module that a worker describes, out of remote ones."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import nn

from grader.isolation.protocol import Header, Packed
from grader.isolation.protocol.checks import identifier, items, member, name_in
from grader.isolation.protocol.modules import STOCK
from grader.isolation.protocol.values import Unpacker
from grader.isolation.proxy.handles import read_fields
from grader.isolation.proxy.modules import RemoteModule
from grader.isolation.proxy.twin import Twin

if TYPE_CHECKING:
    from grader.isolation.proxy.caller import Caller


class Builder:
    """Builds one module with all that is in it.

    Args:
        caller: calls what is built.
        twin: the worker's module.
        unpacker: reads the values of the description.
    """

    def __init__(self, caller: Caller, twin: Twin, unpacker: Unpacker) -> None:
        self._caller = caller
        self._twin = twin
        self._unpacker = unpacker
        self._root: nn.Module | None = None
        self._parameters: dict[int, nn.Parameter] = {}

    def build(self, described: Header, path: str = "") -> nn.Module:
        """Return the module, with all that is in it.

        Raises:
            ProtocolError: the description isn't one.
        """
        module = self._empty(described, path)
        for name, packed, requires_grad in _triples(described["parameters"]):
            module._parameters[name] = self._parameter(packed, requires_grad)
        for name, packed, persistent in _triples(described["buffers"]):
            module._buffers[name] = None if packed is None else self._unpacker.unpack(packed)
            if not persistent:
                module._non_persistent_buffers_set.add(name)
        for entry in items(described["children"]):
            name, child = items(entry, 2)
            inner = f"{path}.{member(name)}" if path else member(name)
            module._modules[name] = None if child is None else self.build(child, inner)
        return module

    def _empty(self, described: Header, path: str) -> nn.Module:
        cls = _remote_class(identifier(described["class"]), described["stock"])
        module: nn.Module = cls.__new__(cls)
        # Past RemoteModule.__setattr__, which guards against tests.
        about = {"_caller": self._caller, "_twin": self._twin, "_path": path, "_root": self._root}
        module.__dict__.update(_new_module_attributes() | about)
        module.__dict__["_numbers"] = read_fields(described["numbers"])
        module.__dict__["training"] = bool(described["training"])
        self._root = module if self._root is None else self._root
        allowed = getattr(cls, "__constants__", ())
        for entry in items(described["settings"]):
            name, packed = items(entry, 2)
            module.__dict__[name_in(name, allowed)] = self._unpacker.unpack(packed)
        return module

    def _parameter(self, packed: Packed, requires_grad: object) -> nn.Parameter | None:
        if packed is None:
            return None
        tensor = self._unpacker.unpack(packed)
        number = packed.get("t", -1 - len(self._parameters))
        if number not in self._parameters:
            self._parameters[number] = nn.Parameter(tensor, requires_grad is True)
        return self._parameters[number]


@functools.lru_cache(maxsize=256)
def _remote_class(name: str, stock: Packed) -> type[RemoteModule]:
    """Return a class of the student's name; made once, because making one takes long."""
    bases = () if stock is None else (STOCK[name_in(stock, STOCK)],)
    return type(name, (RemoteModule, *bases), {})


# What a new module has; nn.Module() takes several times as long as to copy it.
_ATTRIBUTES = vars(nn.Module())
_EMPTY = [
    (name, type(value)) for name, value in _ATTRIBUTES.items() if isinstance(value, dict | set)
]


def _new_module_attributes() -> dict[str, Any]:
    return _ATTRIBUTES | {name: kind() for name, kind in _EMPTY}


def _triples(packed: Packed) -> Iterator[list[Any]]:
    for entry in items(packed):
        triple = items(entry, 3)
        member(triple[0])
        yield triple
